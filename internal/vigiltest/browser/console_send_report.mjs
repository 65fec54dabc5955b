// A nurse sends the report of a month and the one about an escalation to the EMR, and tries a refused document again.
import assert from "node:assert/strict";
import { input, run, shows } from "./browser.mjs";
import { accessible, section, settled, signIn, signOff } from "./console.mjs";

await run(async (page) => {
  const dialog = page.getByRole("dialog");
  const rows = page.getByRole("region", { name: "Deliveries, newest first" }).locator("tbody tr");
  await signIn(page, input.email);
  await section(page, "Patients").click();
  await page.getByRole("main").getByRole("button", { name: /Lee/ }).or(page.getByRole("main").getByRole("link", { name: /Lee/ })).first().click();
  await page.getByLabel("More actions").click();
  await page.getByRole("button", { name: "Send report to EMR" }).click();
  await shows(dialog, "Send a report to the EMR");
  await accessible(page, "the question which month to send");
  assert.match(await dialog.getByLabel("Month").locator("option").first().textContent(), /so far$/);
  await dialog.getByRole("button", { name: "Send" }).click();
  await shows(page.locator(".toast"), "The report is being sent to the EMR.");
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("navigation", { name: "About this patient" }).getByRole("button", { name: "Escalations" }).click();
  await page.getByRole("button", { name: /^Send to EMR: / }).click();
  await page.locator(".toast").filter({ hasText: "The report is being sent to the EMR." }).last().waitFor();
  await section(page, "EMR").click();
  await settled(page);
  await rows.filter({ hasText: "Document" }).nth(1).waitFor();
  await page.getByLabel("State").selectOption("given_up");
  const refused = rows.filter({ hasText: "Too large for the EMR" });
  await refused.first().waitFor();
  await refused.first().getByRole("button", { name: /^TXN-/ }).click();
  await shows(dialog, "Have its administrator raise the limit");
  await accessible(page, "a document that is too large");
  await dialog.getByRole("button", { name: "Try again now" }).click();
  await dialog.waitFor({ state: "detached" });
  await signOff(page);
  return {};
});
