// One 210/125 and then 27 warnings: the critical alert stays first, each patient and cause has one row, one note goes into
// several charts, actions can be undone, rows do not move during use, and the URL stores the list's settings. Keys and
// clicks are counted.
import assert from "node:assert/strict";
import { run, shows } from "./browser.mjs";
import { accessible, heading, section, settled, signIn } from "./console.mjs";
import { signedIn } from "./service.mjs";

const api = await signedIn("nurse@vigil.test");

// Readings in order, as a device sends them.
let turn = 0;
const read = (patient, kind, values) => api("POST", `ingestion/${kind}/`, {
  patient_id: patient.id, measured_at: new Date(Date.now() - 120_000 + turn++ * 1000).toISOString(), ...values,
});

const counted = { keys: 0, clicks: 0 };
const press = async (page, key) => { counted.keys++; await page.keyboard.press(key); };
const type = async (page, text) => { counted.keys += text.length; await page.keyboard.type(text); };
const click = async (what) => { counted.clicks++; await what.click(); };

await run(async (page) => {
  const patients = (await api("GET", "patients/?page_size=100")).results;
  const [worst, ...others] = patients.slice(-4);
  await read(worst, "blood-pressure", { systolic: 210, diastolic: 125 });
  for (let i = 0; i < 27; i++) {
    await read(others[i % 3], "pulse-oximetry", { spo2: 89 + (i % 3) });
  }
  await signIn(page, "nurse@vigil.test");
  await section(page, "Alerts").click();
  const rows = page.locator("table.causes tr.cause");
  await shows(rows, worst.last_name);

  // Most severe first, one row per patient and cause.
  await shows(rows.nth(0), worst.last_name);
  await shows(rows.nth(0), "210/125");
  await shows(rows.nth(1), "×9");
  assert.equal(await rows.count(), 4, "28 alerts are four rows");
  await accessible(page, "the alerts");

  const day = await answerAll(page, rows, worst);
  await undo(page, rows);
  await opens(page, rows);
  await holdsStill(page, rows, others[0], patients[0]);
  await keepsItsAddress(page);
  await keysWhileTyping(page, rows);
  await restsTheRightKind(page, rows);
  await staysOnTheSheet(page, rows);
  await onThePhone(page);
  return day;
});

// The critical alert is acknowledged alone with a note, then all others with one note.
async function answerAll(page, rows, worst) {
  const before = { ...counted };
  await press(page, "j");
  await press(page, "a");
  await page.getByRole("region", { name: "Selected alerts" }).waitFor();
  await shows(page.locator(".bulk"), `1 critical`);
  await type(page, "Called, 911 is on the way.");
  await press(page, "Control+Enter");
  await shows(page.locator(".toast"), "Acknowledged 1 alert");
  await click(page.getByRole("checkbox", { name: "Select all on this page" }));
  await shows(page.locator(".bulk"), "One note for 3 charts");
  await press(page, "n");
  await type(page, "Nail varnish: seen together.");
  await press(page, "Control+Enter");
  await shows(page.locator(".toast"), "Acknowledged 27 alerts");
  await accessible(page, "rows that are answered, which stay where they were");
  const mine = page.getByRole("button", { name: /Mine, in progress/ });
  await shows(mine, "28");
  await mine.click();
  await shows(rows.nth(0), worst.last_name);
  await shows(rows.nth(0), "You");
  const list = (await api("GET", "alerts/?status=acknowledged&page_size=100")).results
    .filter(({ notes }) => notes === "Nail varnish: seen together.");
  assert.equal(list.length, 27, "the note is in each chart");
  await page.getByRole("button", { name: /^Open/ }).click();
  const texts = "Called, 911 is on the way.Nail varnish: seen together.".length;
  return { keys: counted.keys - before.keys - texts, clicks: counted.clicks - before.clicks };
}

// The last action is undone from its message: the alerts are open as before, and the audit trail has both steps.
async function undo(page, rows) {
  await page.locator(".toast", { hasText: "Acknowledged 27 alerts" }).getByRole("button", { name: "Undo" }).click();
  await shows(page.locator(".toast"), "27 alerts restored");
  await shows(rows.nth(0), "×9");
  const [alert] = (await api("GET", "alerts/?status=active&page_size=1")).results;
  assert.equal(alert.notes, null);
  const { audit_trail: trail } = await api("GET", `alerts/${alert.id}/`);
  assert.deepEqual(trail.map(({ action }) => action).filter((action) => action !== "notified"), ["created", "acknowledged", "undone"]);
}

// A row expands to its readings in the same columns, and a reading to its own actions.
async function opens(page, rows) {
  await rows.nth(0).getByRole("button", { name: /^Readings of / }).click();
  const readings = page.locator("tr.reading");
  await readings.nth(8).waitFor();
  await readings.nth(0).getByRole("button", { name: /^Details of / }).click();
  await page.getByRole("button", { name: /^Confirm|^History: / }).first().waitFor();
  await accessible(page, "the readings of a cause");
  await rows.nth(0).getByRole("button", { name: /^Readings of / }).click();
  await readings.first().waitFor({ state: "detached" });
  await heading(page, "Alerts").click();
}

// New alerts during use wait: no row moves, and their number is shown.
async function holdsStill(page, rows, known, fresh) {
  await rows.nth(1).hover();
  const order = async () => rows.evaluateAll((list) => list.map((one) => one.dataset.key));
  const before = await order();
  await read(known, "pulse-oximetry", { spo2: 90 });
  await read(fresh, "blood-pressure", { systolic: 212, diastolic: 126 });
  const news = page.getByRole("button", { name: /1 new, 1 critical: show/ });
  await news.waitFor();
  await shows(rows, "×10");
  assert.deepEqual(await order(), before, "the list moved under the pointer");
  await page.keyboard.press("."); // the critical is answered first
  await page.getByRole("dialog", { name: "Critical alert" }).getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("region", { name: "Unanswered critical alert" }).getByRole("button", { name: "Later" }).click();
  await shows(rows.nth(0), "212/126");
  assert.equal(await news.count(), 0);
  await page.mouse.move(5, 5);
}

// Filters are in the URL; patient names are not.
async function keepsItsAddress(page) {
  await page.getByRole("button", { name: /^Warning/ }).click();
  await page.getByLabel("Kind").selectOption("pulse_oximetry");
  await settled(page);
  const address = page.url();
  assert.match(address, /show=warning/);
  assert.match(address, /type=pulse_oximetry/);
  await page.locator("tr.cause .name").first().click();
  await page.getByRole("navigation", { name: "About this patient" }).waitFor();
  assert.doesNotMatch(page.url(), /[0-9a-f]{8}-/);
  await page.goBack();
  await heading(page, "Alerts").waitFor();
  assert.equal(page.url(), address);
  assert.equal(await page.getByLabel("Kind").inputValue(), "pulse_oximetry");
  await page.getByRole("button", { name: /^Open/ }).click();
  await page.getByLabel("Kind").selectOption("");
  await settled(page);
}

// In a note, letter keys type letters.
async function keysWhileTyping(page, rows) {
  await rows.nth(3).waitFor();
  const before = await rows.count();
  await rows.nth(1).focus();
  await page.keyboard.press("x");
  await page.keyboard.press("n");
  await page.keyboard.type("java exes");
  assert.equal(await page.getByRole("textbox", { name: /^Note/ }).inputValue(), "java exes");
  assert.equal(await rows.count(), before);
  await page.keyboard.press("Escape");
  await page.getByRole("region", { name: "Selected alerts" }).waitFor({ state: "detached" });
}

// A snooze applies to the row's kind, and from the patient page to its alerts.
async function restsTheRightKind(page, rows) {
  const dialog = page.getByRole("dialog");
  const kind = async (of) => {
    await page.waitForFunction((want) => document.querySelector("dialog [name=type]")?.value === want, of);
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.waitFor({ state: "detached" });
  };
  const row = rows.filter({ hasText: "×9" }).first();
  await row.focus();
  await page.keyboard.press("s");
  await kind("pulse_oximetry");
  await row.locator(".name").click();
  await page.getByRole("button", { name: "Snooze alerts" }).click();
  await kind("pulse_oximetry");
}

// After acknowledging an alert on the patient page, the clinician still sees it there, in progress.
async function staysOnTheSheet(page, rows) {
  const tabs = page.getByRole("navigation", { name: "About this patient" });
  const causes = page.locator("tr.cause");
  await causes.first().waitFor();
  const before = await causes.count();
  await shows(causes.first(), "×9"); // nine alerts of one cause are one row, with its trend
  await causes.first().locator("svg.trend").waitFor();
  await causes.first().getByRole("checkbox").check();
  await page.getByRole("button", { name: /^Acknowledge 9/ }).click();
  await shows(page.locator(".toast"), "Acknowledged");
  await tabs.getByRole("button", { name: "Thresholds" }).click();
  await settled(page);
  await tabs.getByRole("button", { name: "Alerts" }).click();
  await shows(causes.first(), "Acknowledged");
  assert.equal(await causes.count(), before, "what was acknowledged vanished from the sheet");
  await section(page, "Alerts").click();
  await rows.first().waitFor();
}

async function onThePhone(page) {
  await page.setViewportSize({ width: 390, height: 844 });
  await settled(page);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `the alerts are ${wide} wide on a phone`);
  await accessible(page, "the alerts on a phone");
  await page.setViewportSize({ width: 1400, height: 1000 });
}
