// A new critical alert is announced with name and value on every page and in every tab, and answered from any page with two keys; a held
// pressure is shown in its order; Reviewed never closes an unanswered critical, and can be undone.
import assert from "node:assert/strict";
import { base, input, run, shows } from "./browser.mjs";
import { accessible, heading, section, settled, signIn } from "./console.mjs";
import { sendReading, signedIn } from "./service.mjs";

const nurse = "nurse@vigil.example";
const api = await signedIn(nurse);
const measured = (patient, systolic, diastolic, at) => sendReading(`EMERGENCY-${patient.patient_id.slice(0, 8)}`, patient.patient_id,
  { systolic, diastolic, pulse: 88 }, at);
const banner = (page) => page.getByRole("region", { name: "Unanswered critical alert" });
const answer = (page) => page.getByRole("dialog", { name: "Critical alert" });
const answered = (page, patient) => banner(page).filter({ hasText: patient.patient_name }).waitFor({ state: "detached" }); // the demo has criticals of its own
const row = (page, id) => page.locator(`.triage > .row[data-id="${id}"]`);

await run(async (page) => {
  // Acknowledge what the demo left, so that each critical of this script is the only one.
  const ids = (await api("GET", "alerts/?status=active&level=critical&page_size=100")).results.map(({ id }) => id);
  ids.length > 0 && await api("POST", "alerts/acknowledge/", { alert_ids: ids });
  const calm = (await api("GET", "triage/patients/?risk_level=normal&page_size=50")).results;
  assert.ok(calm.length >= 5, `${calm.length} calm patients`);
  await atSignIn(page, calm.slice(0, 3));
  await page.locator(".stream", { hasText: /^Live$/ }).waitFor();
  await everyPage(page, calm[0]);
  await everyTab(page, calm[1]);
  await whileTyping(page, calm[2]);
  await inDialog(page, calm[2]);
  await heldPressure(page, calm[3]);
  await reviewed(page, calm[4]);
  await coversNothing(page, calm[0]);
  await narrow(page, calm[0]);
  return {};
}, { banner: true });

// Those that are open before the page is loaded are named too, in one banner: the latest, and how many more.
async function atSignIn(page, patients) {
  for (const [i, patient] of patients.entries()) {
    await measured(patient, 201 + i, 121, new Date(Date.now() - (patients.length - i) * 60_000));
  }
  const last = patients.at(-1);
  const named = async (name, more) => {
    await shows(banner(page), name);
    assert.match((await banner(page).innerText()).replaceAll(/\s+/g, " "), more);
  };
  await signIn(page, nurse);
  await named(last.patient_name, /203\/121 mmHg.*, 1 min and 2 more/);
  const said = page.locator("[aria-live=assertive]", { hasText: `Unanswered critical: ${last.patient_name}, 203/121 mmHg` });
  await said.filter({ hasText: patients[0].patient_name }).waitFor({ state: "attached" });
  assert.equal(await banner(page).count(), 1);
  await page.reload();
  await named(last.patient_name, /and 2 more/);
  for (const [next, more] of [[patients[1], /and 1 more/], [patients[0], /min Answer/], []]) {
    await page.keyboard.press(".");
    await answer(page).waitFor();
    await page.keyboard.press("Control+Enter");
    await answer(page).waitFor({ state: "detached" });
    await (next ? named(next.patient_name, more) : banner(page).waitFor({ state: "detached" }));
  }
  for (const { id } of (await api("GET", "escalations/?active=true&page_size=100")).results.filter((one) => patients.some((p) => p.patient_id === one.patient_id))) {
    await api("PATCH", `escalations/${id}/`, { status: "resolved", resolution_notes: "Seen." });
  }
}

// On each page: named, announced, and answered with two keys, which also end the ladder.
async function everyPage(page, patient) {
  let systolic = 205;
  for (const name of ["Patients", "Enrollment", "Alerts", "Escalations", "On call", "EMR", "Inbox", "Account", "Triage"]) {
    await section(page, name).click();
    await heading(page, name === "Enrollment" ? /Enrollment|Unfinished/ : name).waitFor();
    await settled(page);
    await page.mouse.move(3, 3);
    const top = await page.locator("#main h1").evaluate((node) => node.getBoundingClientRect().top);
    await measured(patient, ++systolic, 126);
    await shows(banner(page), patient.patient_name);
    await shows(banner(page), `${systolic}/126 mmHg`);
    const said = page.locator("[aria-live=assertive]", { hasText: patient.patient_name });
    await said.filter({ hasText: `${systolic}/126 mmHg` }).waitFor({ state: "attached" });
    assert.equal(await page.locator("#main h1").evaluate((node) => node.getBoundingClientRect().top), top, `${name} moved`);
    if (name === "Patients") {
      await accessible(page, "the banner");
    }
    await page.keyboard.press(".");
    await shows(answer(page), `${systolic}/126 mmHg`);
    if (name === "Patients") {
      await accessible(page, "the answer");
    }
    await answer(page).getByRole("button", { name: "Acknowledge and take" }).waitFor();
    await page.waitForFunction(() => document.activeElement?.tagName === "TEXTAREA");
    await page.keyboard.press("Control+Enter");
    await answer(page).waitFor({ state: "detached" });
    await answered(page, patient);
    const open = (await api("GET", `alerts/?patient_id=${patient.patient_id}&status=active&level=critical`)).count;
    assert.equal(open, 0, `${name}: the alert is open`);
    const [escalation] = (await api("GET", `escalations/?patient_id=${patient.patient_id}&active=true`)).results;
    assert.deepEqual([escalation.status, escalation.assigned_to], ["in_progress", nurse], `${name}: the ladder goes on`);
    await api("PATCH", `escalations/${escalation.id}/`, { status: "resolved", resolution_notes: "Seen." });
  }
}

// In another tab too; answered in one, it is gone in both. Put off, it stays in the menu and the tab's title, and the key still opens it.
async function everyTab(page, patient) {
  const other = await page.context().newPage();
  await other.goto(`${base}/#/inbox`);
  await heading(other, "Inbox").waitFor();
  await other.locator(".stream", { hasText: /^Live$/ }).waitFor();
  await measured(patient, 219, 127);
  await shows(banner(page), patient.patient_name);
  await shows(banner(other), patient.patient_name);
  await banner(other).getByRole("button", { name: "Later" }).click();
  await banner(other).waitFor({ state: "detached" });
  assert.equal(await banner(page).count(), 1, "put off in one tab, it waits in the other");
  await other.waitForFunction(() => document.title.startsWith("(1)"));
  await other.keyboard.press(".");
  await answer(other).getByLabel("Note", { exact: true }).fill("Called: on the way.");
  await answer(other).getByRole("button", { name: "Acknowledge and take" }).click();
  await answered(page, patient);
  const [alert] = (await api("GET", `alerts/?patient_id=${patient.patient_id}&level=critical`)).results;
  assert.deepEqual([alert.acknowledged_by, alert.notes], [nurse, "Called: on the way."]);
  await measured(patient, 229, 128); // after an answer the next one is new again
  await shows(banner(page), "229/128 mmHg");
  await other.close();
  await page.keyboard.press(".");
  await page.keyboard.press("Control+Enter");
  await answered(page, patient);
}

// A half-written note keeps its text and the focus.
async function whileTyping(page, patient) {
  await section(page, "Triage").click();
  await page.locator(".triage > .row").first().click();
  const note = page.locator("aside.drawer").getByRole("textbox", { name: /^Note for/ });
  await note.fill("Took the");
  await measured(patient, 224, 128);
  await shows(banner(page), patient.patient_name);
  await page.keyboard.type(" pills. Fine.");
  assert.equal(await note.inputValue(), "Took the pills. Fine.");
  await note.fill("");
  await page.keyboard.press("Escape");
  await page.keyboard.press(".");
  await page.keyboard.press("Control+Enter");
  await answered(page, patient);
}

// A dialog hides the page from screen readers, so that the news is inside it.
async function inDialog(page, patient) {
  await section(page, "Account").click();
  await heading(page, "Account").waitFor();
  await page.keyboard.press("?");
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await measured(patient, 214, 122);
  await shows(dialog.getByRole("alert"), `Unanswered critical: ${patient.patient_name}, 214/122 mmHg`);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.keyboard.press(".");
  await page.keyboard.press("Control+Enter");
  await answered(page, patient);
}

// A pressure that is held as implausible has its systolic value first, and its cause stays after the answer.
async function heldPressure(page, patient) {
  const device = `EMERGENCY-${patient.patient_id.slice(0, 8)}`;
  await assert.rejects(sendReading(device, patient.patient_id, { diastolic: 20, systolic: 300 }), /between 30 and 200/); // refused, and told
  await shows(banner(page), "not confirmed, 300/20 mmHg");
  await section(page, "Alerts").click();
  const held = page.locator("tr.cause", { hasText: patient.patient_name }).filter({ hasText: "Implausible reading, held" });
  await shows(held.locator(".value"), "300/20");
  await page.keyboard.press(".");
  await page.keyboard.press("Control+Enter");
  await answered(page, patient);
  await page.getByRole("button", { name: /Mine, in progress/ }).click();
  await shows(held.locator(".value"), "300/20");
}

// R on an unanswered critical opens the note; other reviews share one message, whose Undo restores each.
async function reviewed(page, patient) {
  await section(page, "Triage").click();
  const { last_reviewed_at: before } = (await api("GET", `triage/patients/?patient_id=${patient.patient_id}`)).results[0];
  await measured(patient, 216, 127);
  await banner(page).getByRole("button", { name: "Later" }).click();
  await row(page, patient.patient_id).locator(".value b", { hasText: "216/127" }).waitFor();
  await row(page, patient.patient_id).focus();
  await page.keyboard.press("r");
  await shows(page.locator(".toast"), "A critical alert is unanswered");
  await page.waitForFunction(() => document.activeElement?.tagName === "TEXTAREA");
  await page.locator("aside.drawer").getByRole("button", { name: /^Reviewed/ }).click();
  const now = async ({ patient_id: id }) => (await api("GET", `triage/patients/?patient_id=${id}`)).results[0].last_reviewed_at;
  assert.equal(await now(patient), before, "an unanswered critical was closed");
  await page.locator("aside.drawer .causes", { hasText: "unacknowledged" }).waitFor();
  await page.locator("aside.drawer").getByRole("button", { name: "Acknowledge and take" }).click();
  await shows(page.locator(".toast"), "escalation assigned to you");
  await page.getByRole("button", { name: "Close the panel" }).click();

  const others = (await api("GET", "triage/patients/?page_size=50")).results.filter((one) => one.unacknowledged_critical === 0).slice(-2);
  const was = await Promise.all(others.map(now));
  for (const one of others) {
    await row(page, one.patient_id).focus();
    await page.keyboard.press("r");
    await row(page, one.patient_id).and(page.locator(".busy")).waitFor({ state: "detached" });
  }
  const told = page.locator(".toast", { hasText: "2 reviewed" });
  await told.waitFor();
  assert.equal(await page.locator(".toast", { hasText: "eviewed" }).count(), 1);
  assert.notDeepEqual(await Promise.all(others.map(now)), was);
  await told.getByRole("button", { name: "Undo" }).click();
  await shows(page.locator(".toast"), "Undone: 2 reviews");
  assert.deepEqual(await Promise.all(others.map(now)), was, "not as before");
}

// On each page and at each size the banner covers no control, and nothing moves.
async function coversNothing(page, patient) {
  const boxes = () => page.evaluate(() => [...document.querySelectorAll("#main :is(a, button, input, select, textarea, [tabindex]), .top :is(a, button)")]
    .filter((node) => !node.closest(".emergency") && node.checkVisibility() && node.getClientRects().length > 0)
    .map((node) => { const { x, y, width, height } = node.getBoundingClientRect(); return { what: node.outerHTML.slice(0, 80), x, y, width, height }; }));
  for (const [width, height] of [[1440, 900], [1024, 768], [390, 844]]) {
    await page.setViewportSize({ width, height });
    for (const view of ["patients", "emr", "account"]) {
      await page.evaluate((to) => consoleModule("router.js").then(({ go }) => go(to)), view);
      await settled(page);
      await page.waitForLoadState("networkidle", { timeout: 2000 }).catch(() => {});
      const before = await boxes();
      await measured(patient, 232 + Math.round(height / 100), 131);
      await shows(banner(page), patient.patient_name);
      const { x, y, width: wide, height: high } = await banner(page).boundingBox();
      const after = await boxes();
      const moved = before.flatMap((one) => after.filter(({ what }) => what === one.what && after.filter((other) => other.what === what).length === 1)
        .filter((now) => now.x !== one.x || now.y !== one.y).map((now) => `${one.what} from ${one.x}, ${one.y} to ${now.x}, ${now.y}`));
      const covered = after.filter((one) => one.x < x + wide && x < one.x + one.width && one.y < y + high && y < one.y + one.height);
      assert.deepEqual([moved, covered], [[], []], `${view} in a window of ${width}`);
      await page.keyboard.press(".");
      await answer(page).waitFor();
      await page.keyboard.press("Control+Enter");
      await answered(page, patient);
    }
  }
}

// The banner fits a phone, and 200 % text size.
async function narrow(page, patient) {
  await measured(patient, 231, 131);
  await shows(banner(page), "231/131 mmHg");
  for (const [width, height] of [[390, 844], [720, 450], [1024, 768]]) {
    await page.setViewportSize({ width, height });
    const box = await banner(page).boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= width, `the banner is ${box.width} wide in a window of ${width}`);
    await accessible(page, `the banner in a window of ${width}`);
  }
  assert.ok(input.password);
}
