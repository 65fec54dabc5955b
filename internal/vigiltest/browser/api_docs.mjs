// The API documentation page, under its content security policy: every group of operations is shown, and an operation can be
// opened.
import assert from "node:assert/strict";
import { base, run, shows } from "./browser.mjs";

await run(async (page) => {
  await page.addInitScript(() => {
    window.refusals = [];
    document.addEventListener("securitypolicyviolation", (event) => window.refusals.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  await page.goto(`${base}/api/docs/`);
  const tags = page.locator(".opblock-tag");
  await tags.first().waitFor();
  const contract = await (await fetch(`${base}/api/v1/schema/`)).json();
  const groups = new Set(Object.values(contract.paths).flatMap((path) => Object.values(path).flatMap((operation) => operation.tags ?? [])));
  assert.deepEqual((await tags.evaluateAll((all) => all.map((tag) => tag.dataset.tag))).sort(), [...groups].sort());
  await page.locator(".opblock-tag", { hasText: /^Auth/i }).first().click();
  const login = page.locator(".opblock", { hasText: "/api/v1/auth/login/" });
  await login.locator(".opblock-summary-control").click();
  await shows(login.locator(".responses-table"), "423");
  assert.deepEqual(await page.evaluate(() => window.refusals), [], "the policy refuses what the page needs");
  return { groups: groups.size };
});
