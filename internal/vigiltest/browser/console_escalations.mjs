// Escalations: the most urgent first, the time until the next tier is notified, reassignment by name, and a hint when a
// second one would be opened.
import assert from "node:assert/strict";
import { base, run, shows } from "./browser.mjs";
import { accessible, section, settled, signIn, signOff } from "./console.mjs";
import { signedIn } from "./service.mjs";

const api = await signedIn("nurse@vigil.test");

const counted = { keys: 0, clicks: 0 };
const press = async (page, key) => { counted.keys++; await page.keyboard.press(key); };

await run(async (page) => {
  for (const one of (await api("GET", "escalations/?active=true&page_size=100")).results) {
    await api("PATCH", `escalations/${one.id}/`, { status: "cancelled", resolution_notes: "From before." });
  }
  const [first, second, third] = (await api("GET", "patients/?page_size=100")).results;
  const make = (patient, priority, reason) => api("POST", "escalations/", { patient_id: patient.id, priority, reason });
  await make(first, "routine", "Exchange the cuff, battery fails");
  await make(second, "stat", "210/125 mmHg, third critical since 06:10");
  await make(third, "urgent", "+2.9 kg in 3 days, heart failure");

  await signIn(page, "nurse@vigil.test");
  await section(page, "Escalations").click();
  const rows = page.locator("li.escalation");
  await rows.nth(2).waitFor();
  assert.deepEqual(await rows.locator(".urgency").allInnerTexts(), ["▲ Stat", "◆ Urgent", "○ Routine"]);
  await shows(rows.nth(0).locator(".next"), /1[345] min/);
  await shows(rows.nth(0).locator(".next"), "to on call");
  const big = await rows.nth(0).locator(".time").evaluate((node) => parseFloat(getComputedStyle(node).fontSize));
  const others = await rows.nth(0).locator("span:not(.time), small, button")
    .evaluateAll((list) => list.map((node) => parseFloat(getComputedStyle(node).fontSize)));
  assert.ok(others.every((size) => size < big), "the time to the next step is not the biggest thing");
  await shows(page.getByRole("region", { name: "Gap in the rota" }), "No one is on call all week");
  await accessible(page, "the escalations");

  // Reassigned with a few letters of the colleague's name.
  await page.locator("body").click({ position: { x: 3, y: 300 } });
  await press(page, "j");
  await press(page, "w");
  const picker = page.getByRole("combobox", { name: "Hand over to" });
  await page.waitForFunction(() => document.activeElement?.getAttribute("role") === "combobox");
  await press(page, "p");
  await press(page, "r");
  await press(page, "o");
  await page.getByRole("option").first().waitFor();
  await press(page, "ArrowDown");
  await press(page, "Enter");
  await shows(page.locator(".toast"), "Handed over to");
  const given = (await api("GET", "escalations/?priority=stat&active=true")).results[0];
  assert.equal(given.assigned_to, "provider@vigil.test");
  await shows(rows.nth(0).locator(".with"), given.assigned_name);
  const steps = { ...counted };
  assert.equal(await picker.count(), 1);

  // A second escalation shows that one is open, and its owner.
  await page.getByRole("button", { name: /^New escalation/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("combobox", { name: "Patient" }).fill(second.last_name);
  await dialog.getByRole("option", { name: new RegExp(second.mrn) }).click();
  await shows(dialog.locator(".notice"), "1 escalation is already open");
  await shows(dialog.locator(".notice"), given.assigned_name);
  page.refused = `${base}/api/v1/escalations/`;
  await dialog.getByRole("button", { name: "Escalate" }).click();
  await dialog.getByText("Fill this in.").first().waitFor();
  assert.equal(await dialog.getByText(/may not be/).count(), 0, "the service's own words are shown");
  await dialog.getByRole("button", { name: "Cancel" }).click();

  // One key takes it, and it is in progress.
  await rows.nth(0).focus();
  await page.keyboard.press("t");
  await shows(page.locator(".escalations .group"), "In progress");
  await shows(rows.nth(2).locator(".with"), "You");
  await shows(rows.nth(2).locator(".next"), "note is due");
  await page.setViewportSize({ width: 390, height: 844 });
  await settled(page);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `the escalations are ${wide} wide on a phone`);
  await accessible(page, "the escalations on a phone");
  await page.setViewportSize({ width: 1400, height: 1000 });
  await signOff(page);
  await hubsSayWhose(page);
  return steps;
});

// The equipment staff sees the owners of the devices behind a hub.
async function hubsSayWhose(page) {
  await signIn(page, "clinical_manager@vigil.test");
  await section(page, "Operations").click();
  await page.getByRole("tab", { name: "Hubs and devices" }).click();
  await shows(page.locator("tr", { hasText: "HUB-1" }), "CUFF-1 of Ingrid Kim");
}
