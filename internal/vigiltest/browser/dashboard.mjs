// An administrator in PocketBase's dashboard: reads and renames a patient, enters a reading, tries forbidden changes, and
// opens every page.
import assert from "node:assert/strict";
import { base, input, refused, run, shows } from "./browser.mjs";

const { patient } = input;

const columnOf = (page, id, name) => page.locator("tbody tr", { hasText: id }).locator(`[data-name=${name}]`);
const complaintAt = (form, field) => form.locator(`.field-help.error[data-input-name=${field}]`);
const toast = (page) => page.locator(".toast");
const saveChanges = (page) => page.getByRole("button", { name: "Save changes" }).click();

await run(async (page) => {
  await signIn(page);
  await rename(page);
  const observation = await enterReading(page);
  await changeReading(page, observation);
  await deletePatient(page);
  await lookAround(page);
  return { observation };
  // On a slow machine the dashboard warns about requests that it canceled while navigating.
}, { tolerate: /autocancelled/ });

async function signIn(page) {
  await page.goto(`${base}/_/`);
  await page.locator("[name=identity]").fill(input.email);
  await page.locator("[name=password]").fill(input.password);
  const records = page.waitForResponse((response) => /\/collections\/[^/]+\/records/.test(response.url()));
  await page.getByRole("button", { name: "Next" }).click();
  await page.waitForURL(/collection=/); // the dashboard opens the first collection automatically, and ignores other URLs until it has
  await records;
  await page.locator(".new-record-btn").waitFor();
}

// openCollection shows a collection's records.
async function openCollection(page, name) {
  const header = await page.locator(".page-header").innerText();
  if (header.split(/\s+/).includes(name)) {
    return; // already open; the dashboard would not open it again
  }
  const records = page.waitForResponse((response) => response.url().includes(`/collections/${name}/records`));
  await page.goto(`${base}/_/#/collections?collection=${name}`);
  await records;
  await shows(page.locator(".page-header"), name);
}

// openRecord opens the form of a listed record.
async function openRecord(page, id) {
  await page.locator("tbody tr", { hasText: id }).click();
  const form = page.locator(".record-upsert-modal");
  await form.locator("[inert]").waitFor({ state: "detached" }); // while it loads
  return form;
}

async function rename(page) {
  await openCollection(page, "patients");
  assert.equal(await columnOf(page, patient.id, "first_name").innerText(), patient.first_name);
  assert.equal(await columnOf(page, patient.id, "last_name").innerText(), patient.last_name);

  const form = await openRecord(page, patient.id);
  assert.equal(await form.locator("[name=first_name]").inputValue(), patient.first_name);
  const lastName = form.locator("[name=last_name]");
  assert.equal(await lastName.inputValue(), patient.last_name);
  await shows(form.locator(".field-help"), "Family name. Encrypted at rest.");

  await lastName.fill(input.new_last_name);
  await form.getByRole("button", { name: "Unlock to save" }).click();
  const kept = await page.evaluate(() => JSON.stringify(localStorage));
  assert.ok(!kept.includes(input.new_last_name), "the browser keeps what was typed");
  await saveChanges(page);
  await shows(toast(page), "Successfully updated");
  await shows(columnOf(page, patient.id, "last_name"), input.new_last_name);
}

// enterReading enters a blood pressure, first an implausible and then a critical one.
async function enterReading(page) {
  await openCollection(page, "observations");
  await page.locator(".new-record-btn").click();
  const form = page.locator(".record-upsert-modal");
  await form.getByRole("button", { name: "Open records picker" }).click();
  const picker = page.locator(".records-picker-modal");
  await picker.locator(".searchbar [contenteditable]").fill(input.new_last_name);
  await picker.locator(".searchbar [contenteditable]").press("Enter");
  await page.waitForFunction(() => document.querySelector(".records-picker-list").innerText.match(/MRN-/g)?.length === 1);
  await picker.locator(".list-item", { hasText: patient.mrn }).click();
  await page.getByRole("button", { name: "Set selection" }).click();
  await shows(form.locator(".field-list"), patient.mrn);
  await form.locator("[name=observation_type]").click();
  await page.locator(".dropdown:popover-open").getByText("blood_pressure").click();
  await form.locator("[name=measured_at]").fill(new Date().toISOString().replace("Z", "000Z"));
  await form.locator("[name=systolic]").fill("80");
  await form.locator("[name=diastolic]").fill("110");
  await form.locator("[name=pulse]").fill("70");
  await form.locator("[name=pulse]").fill(""); // a cleared number is empty, not 0
  const create = form.getByRole("button", { name: "Create", exact: true });
  await refused(page, () => create.click());
  await complaintAt(form, "diastolic").waitFor();

  await form.locator("[name=systolic]").fill("230");
  const created = page.waitForResponse((response) => response.request().method() === "POST" && response.ok());
  await create.click();
  return (await (await created).json()).id;
}

async function changeReading(page, observation) {
  await shows(columnOf(page, observation, "systolic"), "230");
  const form = await openRecord(page, observation);
  const pulse = form.locator("[name=pulse]");
  assert.equal(await pulse.getAttribute("type"), "number");
  assert.equal(await pulse.inputValue(), "");
  await form.locator("[name=weight_kg]").fill("80");
  await form.getByRole("button", { name: "Unlock to save" }).click();
  await refused(page, () => saveChanges(page));
  await shows(complaintAt(form, "measured_at"), "A stored reading is never changed");
}

async function deletePatient(page) {
  await openCollection(page, "patients");
  const form = await openRecord(page, patient.id);
  await form.getByTitle("More options").click();
  await page.locator(".dropdown:popover-open").getByText("Delete").click();
  await refused(page, () => page.getByRole("button", { name: "Delete record" }).click());
  await shows(toast(page), "Records of this kind cannot be deleted.");
  await form.waitFor({ state: "detached" });
  await columnOf(page, patient.id, "id").waitFor();
}

// lookAround opens every page that uses Vigil's field types, and the settings.
async function lookAround(page) {
  const names = await page.evaluate(() => {
    const ours = (field) => ["phi", "optional_number"].includes(field.type);
    return app.store.collections.filter((collection) => collection.fields.some(ours)).map((collection) => collection.name).sort();
  });
  assert.ok(names.length > 10, `collections with our field types: ${names}`);
  for (const name of names) {
    await openCollection(page, name);
  }
  await openCollection(page, "alerts");
  await page.locator(".new-record-btn").click();
  const form = page.locator(".record-upsert-modal");
  await shows(form.locator(".record-field-input"), "threshold");
  await form.getByRole("button", { name: "Close" }).click();
  await form.waitFor({ state: "detached" });

  await openCollection(page, "observations");
  await page.getByRole("button", { name: "API preview" }).click();
  for (const tab of ["List/Search", "View", "Create", "Update", "Delete", "Realtime", "Batch"]) {
    await page.locator(".api-preview-nav").getByText(tab, { exact: true }).click();
    await shows(page.locator(".api-preview-content:not(.faded) h6"), `${tab} (observations)`);
  }
  await page.locator(".preview-close-btn").click();
  await page.locator(".api-preview-modal").waitFor({ state: "detached" });
  await page.locator("button:has(.ri-organization-chart)").click();
  await shows(page.locator(".erd-table"), "glucose_mg_dl");
  await page.locator(".modal-close-btn").click();
  const settings = { "": "Application", "/mail": "Mail settings", "/crons": "Crons" };
  for (const [path, title] of Object.entries(settings)) {
    await page.goto(`${base}/_/#/settings${path}`);
    await shows(page.locator(".page-header"), title);
  }
  for (const closed of ["/storage", "/backups", "/import-collections"]) {
    assert.equal(await page.locator(`a[href="#/settings${closed}"]`).count(), 0, `the menu leads to ${closed}`);
    await page.goto(`${base}/_/#/settings${closed}`);
    await page.waitForURL(`${base}/_/#/settings`);
  }
  await page.goto(`${base}/_/#/logs`);
  await shows(page.locator(".page-header"), "Logs");
}
