// A payer's settings are changed in its view, and a list of fees is shown before it is imported.
import assert from "node:assert/strict";
import { run, shows } from "./browser.mjs";
import { accessible, section, signIn } from "./console.mjs";

await run(async (page) => {
  await signIn(page, "admin@vigil.example");
  await section(page, "Billing").click();
  await page.getByRole("button", { name: "Payers and fees" }).or(page.getByRole("tab", { name: "Payers and fees" })).click();
  await page.getByRole("button", { name: "Add a payer" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Lakeside Health");
  await dialog.getByLabel("Payer ID", { exact: true }).fill("LH");
  await dialog.getByRole("button", { name: "Add" }).click();
  await page.getByRole("button", { name: "Lakeside Health" }).click();
  await dialog.getByLabel("Timely filing limit in days").fill("180");
  await dialog.getByLabel("Appeal limit in days").fill("60");
  await dialog.getByLabel("Corrected claims go").selectOption("new_claim");
  await dialog.getByLabel("Minutes that count").selectOption("care_management");
  await dialog.getByLabel("Device supply needs").selectOption("16");
  await dialog.getByLabel("Modifiers").fill("99457 95 gt\n99454: 25");
  await dialog.getByLabel("Other receiver IDs of this practice").fill("OLD1\nOLD2");
  await dialog.getByLabel("Send the ordering provider on claims").check();
  await accessible(page, "a payer's settings");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Lakeside Health" }).click();
  assert.equal(await dialog.getByLabel("Modifiers").inputValue(), "99457 95 GT\n99454 25");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Import fee schedule" }).click();
  await dialog.getByLabel("CSV").fill("cpt_code,locality,effective_date,charge,expected,source\n99457,,2026-01-01,80,51.77,CMS");
  await dialog.getByRole("button", { name: "Preview" }).click();
  await shows(dialog.locator("table"), "99457");
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  return {};
});
