// An administrator's work in PocketBase's dashboard: finds the collection, finds a patient by name, changes an address, and
// sees why a change is refused.
import assert from "node:assert/strict";
import { base, input, refused, run, shows } from "./browser.mjs";

const { patient, address } = input;

const rows = (page) => page.locator("tbody tr.handle");
const rowOf = (page, id) => page.locator("tbody tr.handle", { hasText: id });
const searchbar = (page) => page.locator(".page-content .records-searchbar-wrapper");
const complaintAt = (form, field) => form.locator(`.field-help.error[data-input-name="${field}"]`);

await run(async (page) => {
  const asked = [];
  page.on("request", (request) => asked.push(decodeURIComponent(request.url().replaceAll("+", " "))));
  await signIn(page);
  await seeGroups(page);
  await findByName(page);
  await findElsewhere(page);
  await beToldWhyNot(page, asked);
  await changeAddress(page);
  const told = [...asked, JSON.stringify(await page.evaluate(() => ({ ...localStorage, ...sessionStorage })))].join("\n");
  for (const secret of [patient.last_name, patient.phone, address.line1]) {
    assert.ok(!told.toLowerCase().includes(secret.toLowerCase()), `an address or the browser's storage holds ${secret}`);
  }
  return {};
}, { tolerate: /autocancelled/ }); // the dashboard cancels requests while navigating, and warns about it

async function signIn(page) {
  await page.goto(`${base}/_/`);
  await page.locator("[name=identity]").fill(input.email);
  await page.locator("[name=password]").fill(input.password);
  await page.getByRole("button", { name: "Next" }).click();
  await page.waitForURL(/collection=/);
}

async function seeGroups(page) {
  assert.match(page.url(), /collection=patients$/, "patients are not what is shown first");
  const groups = page.locator(".collections-list .nav-group");
  await shows(groups, "Patients");
  assert.deepEqual(await groups.locator("summary").allInnerTexts(), [
    "Patients", "Thresholds and on-call", "Devices", "Time and billing", "Accounts and audit", "Connections", "Internal",
  ]);
  const names = (group) => group.locator(".nav-item").evaluateAll((items) => items.map((item) => item.title));
  assert.deepEqual((await names(groups.first())).slice(0, 5), ["patients", "observations", "alerts", "escalations", "triage_scores"]);
  const all = await page.evaluate(() => app.store.collections.map((collection) => collection.name));
  assert.deepEqual((await names(groups)).sort(), all.sort(), "each collection stands in one group");
  assert.equal(await groups.last().getAttribute("open"), null, "the machinery is spread out");

  const search = page.getByPlaceholder("Search collections...");
  await search.fill("refresh");
  await groups.getByTitle("refresh_tokens").waitFor();
  assert.deepEqual(await names(groups), ["refresh_tokens"]);
  await search.fill("");
  await shows(groups, "Patients");
  const pinning = (what) => groups.getByTitle("devices", { exact: true }).getByTitle(what, { exact: true }).click();
  await pinning("Pin");
  await shows(groups.first(), "Pinned");
  assert.deepEqual(await names(groups.first()), ["devices"]);
  await page.reload();
  await shows(groups.first(), "Pinned");
  await pinning("Unpin");
  await shows(groups.first(), "Patients");
  await groups.first().getByTitle("alerts").click();
  await page.waitForURL(/collection=alerts/);
  await groups.first().getByTitle("patients").click();
  await page.waitForURL(/collection=patients/);
}

// open goes to a collection through the sidebar.
async function open(page, name) {
  await page.locator(".collections-list").getByTitle(name, { exact: true }).click();
  await page.waitForURL(new RegExp(`collection=${name}$`));
  await shows(page.locator(".page-header"), name);
}

// search types into the search field above the records.
async function search(page, words) {
  const editor = searchbar(page).locator("[contenteditable]");
  await editor.fill(words);
  await editor.press("Enter");
}

async function findByName(page) {
  await rowOf(page, patient.id).waitFor();
  assert.ok(await rows(page).count() > 1);
  const ways = [patient.last_name.toLowerCase(), `${patient.last_name.slice(0, 4)} ${patient.first_name}`, patient.mrn.slice(-5), patient.phone, patient.id];
  for (const words of ways) {
    await search(page, words);
    await page.waitForFunction(() => document.querySelectorAll("tbody tr.handle").length === 1);
    await rowOf(page, patient.id).waitFor();
    assert.equal(await searchbar(page).locator("[contenteditable]").innerText(), words);
    await page.getByRole("button", { name: "Clear" }).click();
    await page.waitForFunction(() => document.querySelectorAll("tbody tr.handle").length > 1);
  }
  await search(page, "nobodyiscalledso");
  await shows(page.locator("tbody"), "No records found");
  await shows(searchbar(page), "complete SSNs, email addresses and phone numbers");
  await shows(searchbar(page), "Not searched, because encrypted: date_of_birth, address,");
}

// findElsewhere finds a patient's records by name, and records with a word in an unencrypted column.
async function findElsewhere(page) {
  await open(page, "care_team_members");
  await page.waitForFunction(() => document.querySelectorAll("tbody tr.handle").length > 1);
  await search(page, patient.last_name);
  await page.waitForFunction((mrn) => {
    const found = [...document.querySelectorAll("tbody tr.handle")];
    return found.length > 0 && found.every((row) => row.textContent.includes(mrn));
  }, patient.mrn);
  await open(page, "users");
  await search(page, "clinical");
  await page.waitForFunction(() => {
    const found = [...document.querySelectorAll("tbody tr.handle [data-name=role]")];
    return found.length > 0 && found.every((cell) => cell.textContent.includes("clinical"));
  });
  await open(page, "payers");
  await search(page, patient.last_name);
  await shows(searchbar(page), "To find a person, search patients or users");
}

async function beToldWhyNot(page, asked) {
  await open(page, "patients");
  await rowOf(page, patient.id).waitFor();
  const before = asked.length;
  await search(page, `last_name ~ "zzz"`);
  await shows(page.locator(".toast"), "last_name is encrypted");
  await page.locator("th.col-field-name-last_name").click();
  await shows(page.locator(".toast"), "cannot be sorted");
  const since = asked.slice(before).filter((url) => /filter=|sort=[+-]?last_name/.test(url));
  assert.deepEqual(since, [], "what cannot be answered is asked");
  await search(page, `active = true`); // any other filter is PocketBase's own
  await page.waitForURL(/filter=active/);
  await rowOf(page, patient.id).waitFor();
}

async function changeAddress(page) {
  await rowOf(page, patient.id).click();
  const form = page.locator(".record-upsert-modal");
  await form.locator("[inert]").waitFor({ state: "detached" });
  const line = (name) => form.getByRole("group", { name: "address" }).getByLabel(name, { exact: true });
  assert.equal(await line("Street").inputValue(), patient.address.line1);
  assert.equal(await form.getByRole("button", { name: "Unlock to save" }).isDisabled(), true, "nothing has changed yet");
  await line("Street").fill(address.line1);
  await line("City").fill("");
  await line("ZIP").fill("6270");
  await form.getByRole("button", { name: "Unlock to save" }).click();
  await refused(page, () => page.getByRole("button", { name: "Save changes" }).click());
  await shows(complaintAt(form, "address.city"), "This field is required");
  await shows(complaintAt(form, "address.zip"), "Must be a ZIP code");
  await line("City").fill(address.city);
  await line("ZIP").fill(address.zip);
  await page.getByRole("button", { name: "Save changes" }).click();
  await shows(page.locator(".toast"), "Successfully updated");
  const { state } = patient.address;
  await shows(rowOf(page, patient.id).locator("[data-name=address]"), `${address.line1}, ${address.city}, ${state} ${address.zip}, US`);
}
