// The page of a password link.
import assert from "node:assert/strict";
import { base, input, refused, run, shows } from "./browser.mjs";

await run(async (page) => {
  await page.goto(input.link);
  assert.ok(!page.url().includes("token"), "the token stays in the address bar");
  const send = page.getByRole("button", { name: "Set password" });
  await page.getByLabel("New password").fill(input.password);
  await page.getByLabel("Confirm password").fill(input.password + "?");
  await refused(page, () => send.click());
  await shows(page.locator("#result"), /differ/);
  await page.getByLabel("Confirm password").fill(input.password);
  await send.click();
  await send.waitFor({ state: "hidden" });

  await page.goto(`${base}/reset-password`);
  await shows(page.locator("#result"), "This link is incomplete");
  return {};
});
