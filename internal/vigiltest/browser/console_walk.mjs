// The path of a first-time user: find the most urgent patient and the reason, acknowledge, call, and find the call in
// billing.
import assert from "node:assert/strict";
import { run, shows } from "./browser.mjs";
import { section, settled, signIn } from "./console.mjs";

await run(async (page) => {
  await signIn(page, "provider@vigil.example");
  const first = page.getByRole("list", { name: "Patients by urgency" }).locator(":scope > .row").first();
  const name = await first.locator(".name").innerText();
  assert.match(await first.getAttribute("aria-label"), /Critical|Warning/, "the first of the list is urgent");
  const why = await first.locator(".why").innerText();
  assert.ok(why.trim().length > 10, "the list says why");
  await first.click();
  await page.getByRole("button", { name: "Open chart" }).click();
  await shows(page.getByRole("heading", { level: 1 }), name);

  const tabs = page.getByRole("navigation", { name: "About this patient" });
  await tabs.getByRole("button", { name: "Alerts" }).click();
  await settled(page);
  await page.locator("tr.cause").first().getByRole("checkbox").check();
  const note = page.getByRole("textbox", { name: "Note" });
  await note.fill("Called: well.");
  await page.keyboard.press("Control+Enter");
  await shows(page.locator(".toast"), "Acknowledged");

  await tabs.getByRole("button", { name: "Billing" }).click();
  await settled(page);
  const minutes = async () => Number((await page.locator(".progress", { hasText: "Minutes" }).first().innerText()).match(/(\d+)\s+of/)[1]);
  const before = await minutes();

  await tabs.getByRole("button", { name: "Time log" }).click();
  await page.getByRole("button", { name: "Log a phone call" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Minutes").fill("12");
  await dialog.getByLabel("Notes").fill("Talked about the readings of this week.");
  await dialog.getByRole("button", { name: "Log", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await shows(page.locator("tbody"), "Talked about the readings");

  await tabs.getByRole("button", { name: "Billing" }).click();
  await settled(page);
  assert.equal(await minutes(), before + 12, "the call is on the bill");
  await section(page, "Triage").click();
  await shows(page.getByRole("heading", { level: 1 }), "Triage");
  return { name };
});
