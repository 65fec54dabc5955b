// Counts the keys and clicks to review the thirty most urgent patients: view each with its last two weeks, acknowledge open
// alerts, with a note on critical ones, and record a review where there are none.
import assert from "node:assert/strict";
import { run } from "./browser.mjs";
import { signIn } from "./console.mjs";
import { signedIn } from "./service.mjs";

const patients = 30;
const nurse = "nurse@vigil.example";
const api = await signedIn(nurse);
const standing = async (id) => (await api("GET", `triage/patients/?patient_id=${id}`)).results[0];
const count = { keys: 0, clicks: 0 };

await run(async (page) => {
  await signIn(page, nurse);
  const press = async (key) => { count.keys++; await page.keyboard.press(key); };
  const drawer = page.locator("aside.drawer");
  await page.locator(".triage > .row").first().waitFor();
  await page.locator(".stream", { hasText: /^Live$/ }).waitFor();
  const done = new Map();
  await press("j");
  await press("Enter");
  for (let n = 0; n < patients; n++) {
    const id = await page.evaluate(() => document.activeElement?.dataset.id);
    assert.ok(id && !done.has(id), "the focus is on the next patient of the list");
    await page.locator(`.triage > .row[data-id="${id}"].opened`).waitFor();
    await drawer.locator(".causes[aria-busy=false]").waitFor();
    const row = await standing(id);
    done.set(id, row);
    const open = await drawer.locator("button:has(kbd)", { hasText: "Acknowledge" }).isEnabled(); // readings continue to arrive and resolve alerts
    if (row.unacknowledged_alerts === 0 || !open) {
      await press("r");
    } else {
      await press("a");
      if (row.unacknowledged_critical > 0) {
        await page.waitForFunction(() => document.activeElement?.tagName === "TEXTAREA");
        await page.keyboard.insertText("Called, feels well, measures again at noon.");
        await press("Control+Enter");
      }
      if (row.active_escalations > 0) { // then there is more to do, and the list stays at the patient
        await drawer.locator(".causes", { hasText: /Alerts: \d+ acknowledged/ }).waitFor();
        await page.waitForFunction((on) => document.activeElement?.dataset.id === on, id);
        await press("j");
      }
    }
    await page.waitForFunction((on) => document.activeElement?.dataset.id && document.activeElement.dataset.id !== on, id);
  }
  let before = 0; // the previous list: the patient opened and closed, each alert acknowledged there, a critical one in a dialog
  for (const [id, row] of done) {
    const now = await standing(id);
    assert.equal(now.last_reviewed_by, nurse, "everybody was seen to");
    before += 2 + Math.max(1, row.unacknowledged_alerts + row.unacknowledged_critical);
  }
  return { patients: done.size, before, ...count };
});
