// Note templates: the manager edits the texts, each note offers those that fit, and inserted text can be edited. Drafts
// survive a reload.
import assert from "node:assert/strict";
import { run, shows } from "./browser.mjs";
import { accessible, heading, section, settled, signIn, signOff } from "./console.mjs";
import { signedIn } from "./service.mjs";

const api = await signedIn("nurse@vigil.test");
const texts = { name: "Insert a note template" };
const dialog = (page) => page.getByRole("dialog");

await run(async (page) => {
  const [patient] = (await api("GET", "patients/?page_size=1")).results;
  await api("POST", "ingestion/pulse-oximetry/", { patient_id: patient.id, spo2: 90, measured_at: new Date().toISOString() });
  await api("POST", "ingestion/blood-glucose/", { patient_id: patient.id, glucose_mg_dl: 62, measured_at: new Date().toISOString() });
  const { id } = await api("POST", "escalations/", { patient_id: patient.id, priority: "urgent", reason: "Short of breath" });

  await signIn(page, "clinical_manager@vigil.test");
  await keep(page, "Nail varnish", "Alerts", "Nail varnish; measured again without it.");
  await keep(page, "Handed over", "Escalations", "Handed over to the evening team.");
  await keep(page, "No answer", "Any note", "Called twice, nobody answered.");
  await accessible(page, "the note templates");
  await signOff(page);

  await signIn(page, "nurse@vigil.test");
  await inTheAlerts(page, patient);
  await inAnEscalation(page, id);
  await undoLasts(page);
  return {};
});

async function keep(page, name, context, text) {
  await section(page, "Operations").click();
  await page.getByRole("tab", { name: "Note templates" }).click();
  await page.getByRole("button", { name: "Add a note template" }).click();
  await dialog(page).getByLabel("Name").fill(name);
  await dialog(page).getByLabel("For").selectOption({ label: context });
  await shows(dialog(page), "do not include names, dates of birth or other patient details");
  await dialog(page).getByLabel("Text").fill(text);
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await dialog(page).waitFor({ state: "detached" });
  await shows(page.locator("tbody tr"), text);
}

// A matching template is inserted at the cursor, separated from the existing text; the note remains editable.
async function inTheAlerts(page, { last_name: name }) {
  await section(page, "Alerts").click();
  await page.locator("tr.cause", { hasText: name }).first().getByRole("checkbox").check();
  const note = page.getByRole("textbox", { name: /^Note/ });
  const offered = page.getByLabel(texts.name);
  await offered.waitFor();
  assert.deepEqual(await offered.locator("option").allInnerTexts(), ["Insert a template…", "Nail varnish", "No answer"]);
  await note.fill("Seen.");
  await offered.selectOption({ label: "Nail varnish" });
  assert.equal(await note.inputValue(), "Seen. Nail varnish; measured again without it.");
  await page.keyboard.type(" 97 %.");
  await accessible(page, "a note with templates");
  await page.getByRole("button", { name: /^Acknowledge 1/ }).click();
  await shows(page.locator(".toast"), "Acknowledged 1 alert");
  const [alert] = (await api("GET", "alerts/?status=acknowledged&page_size=1")).results;
  assert.equal(alert.notes, "Seen. Nail varnish; measured again without it. 97 %.");
}

// The dialog's text survives a reload, inserted templates included.
async function inAnEscalation(page, id) {
  await section(page, "Escalations").click();
  const row = page.locator("li.escalation").first();
  const open = async () => {
    await row.getByRole("button", { name: /^About the escalation of / }).click();
    await row.getByRole("button", { name: /^Resolve: / }).click();
  };
  await row.getByRole("button", { name: /^About the escalation of / }).click();
  await row.getByRole("button", { name: /^Take: / }).click();
  await shows(row.locator(".with"), "You");
  await row.getByRole("button", { name: /^Resolve: / }).click();
  await dialog(page).getByLabel(texts.name).waitFor();
  assert.deepEqual(await dialog(page).getByLabel(texts.name).locator("option").allInnerTexts(), ["Insert a template…", "Handed over", "No answer"]);
  await dialog(page).getByLabel(texts.name).selectOption({ label: "Handed over" });
  await page.waitForFunction(() => Object.keys(sessionStorage).some((name) => name.startsWith("draft.")));
  await page.reload();
  await heading(page, "Escalations").waitFor();
  await settled(page);
  await open();
  const done = dialog(page).getByLabel("Resolution");
  assert.equal(await done.inputValue(), "Handed over to the evening team.", "a reload loses what was done");
  await accessible(page, "an escalation is resolved");
  await dialog(page).getByRole("button", { name: "Resolve" }).click();
  await dialog(page).waitFor({ state: "detached" });
  assert.equal((await api("GET", `escalations/${id}/`)).resolution_notes, "Handed over to the evening team.");
}

// An action can be undone for ten seconds only.
async function undoLasts(page) {
  await section(page, "Alerts").click();
  await heading(page, "Alerts").waitFor();
  await page.context().clock.install();
  await page.locator("tr.cause").first().getByRole("checkbox").check();
  await page.getByRole("button", { name: /^Acknowledge 1/ }).click();
  await page.mouse.move(5, 5); // the countdown stops under the pointer
  const back = page.locator(".toast", { hasText: "Acknowledged 1 alert" }).getByRole("button", { name: "Undo" });
  await back.waitFor();
  await page.context().clock.runFor(8_000);
  await back.waitFor();
  await page.context().clock.runFor(3_000);
  await back.waitFor({ state: "detached" });
}
