// Month-end review of 56 entries: the biller sees the reviewable entries and what blocks the rest, reviews all with one
// click, reverts it, goes through them one by one, and returns to the same filters. Clicks are counted.
import assert from "node:assert/strict";
import { input, run, shows } from "./browser.mjs";
import { accessible, heading, section, settled, signIn } from "./console.mjs";

const took = { clicks: 0, keys: 0 };
const click = async (locator) => { took.clicks++; await locator.click(); };
const sheet = (page) => page.getByRole("region", { name: "To review", exact: true });
const rows = (page) => sheet(page).locator("tbody tr[data-key]");
const chip = (page, name) => page.getByRole("group", { name: "Which entries" }).getByRole("button", { name });

await run(async (page) => {
  await signIn(page, "billing@vigil.example");
  await review(page);
  const done = { ...took };
  await blockers(page);
  await oneByOne(page);
  await cameBack(page);
  await foundAnywhere(page);
  await exported(page);
  await reports(page);
  await answered(page);
  await previewed(page);
  await denials(page);
  await prints(page);
  for (const [width, colorScheme] of [[390, "light"], [720, "dark"], [1440, "dark"]]) { // 720 is a laptop at 200 %
    await page.setViewportSize({ width, height: 844 });
    await page.emulateMedia({ colorScheme });
    await section(page, "Billing").click();
    await page.getByRole("button", { name: /^Earlier/ }).click();
    await rows(page).first().waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `the page is wider than ${width}`);
    await accessible(page, `the month's end at ${width}, ${colorScheme}`);
  }
  return done;
});

async function review(page) {
  await click(section(page, "Billing"));
  await click(page.getByRole("button", { name: /^Earlier/ }));
  await shows(chip(page, /^All/), "56");
  await shows(chip(page, /Ready/), "41");
  await shows(chip(page, /Blocked/), "15");
  assert.equal(await rows(page).locator("input:checked").count(), 41);
  assert.equal(await rows(page).locator("input:disabled").count(), 15, "what is blocked cannot be chosen");
  await accessible(page, "the month's end");
  took.keys++;
  await page.keyboard.press("Control+Enter");
  await shows(page.locator(".toast"), "41 reviewed.");
  await shows(chip(page, /^All/), "15");
  await page.getByRole("button", { name: "Undo" }).click();
  await shows(chip(page, /Ready/), "41");
}

// prints checks that a sheet of paper has every stage of the month and the whole table.
async function prints(page) {
  await section(page, "Billing").click();
  await page.getByRole("button", { name: /^Earlier/ }).click();
  await rows(page).first().waitFor();
  const before = page.viewportSize();
  await page.setViewportSize({ width: 720, height: 960 });
  await page.emulateMedia({ media: "print" });
  const stages = page.getByRole("list", { name: "Progress of the month" }).locator("li strong").filter({ visible: true });
  assert.equal(await stages.count(), 7, "a stage of the month is not printed");
  assert.ok(await sheet(page).locator("table").evaluate((table) => table.getBoundingClientRect().right <= innerWidth), "the table is wider than the paper");
  await page.emulateMedia({ media: "screen" });
  await page.setViewportSize(before);
}

async function blockers(page) {
  const why = page.getByRole("region", { name: /^Blocked by/ }).getByRole("button").first();
  const told = await why.locator("strong").innerText();
  await why.click();
  await rows(page).first().waitFor();
  const held = await rows(page).count();
  await page.keyboard.press("j");
  await page.keyboard.press("o");
  const mends = sheet(page).locator(".against");
  await mends.first().waitFor();
  await accessible(page, "an entry with what blocks it");
  const name = await page.locator("tr:focus bdi").innerText();
  assert.ok(!page.url().includes(name.split(" ")[0]), "the address names somebody");
  const address = page.url();
  await mends.getByRole("button").first().click();
  await page.getByRole("navigation", { name: "About this patient" }).waitFor();
  await page.goBack();
  await rows(page).first().waitFor();
  assert.equal(page.url(), address, "the way back leads elsewhere");
  assert.equal(await rows(page).count(), held, `no longer those of ${told}`);
  assert.equal(await why.getAttribute("aria-pressed"), "true");
  await why.click();
}

async function oneByOne(page) {
  await chip(page, /Ready/).click();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  const panel = page.locator(".drawer");
  const first = await panel.getByRole("heading", { level: 2 }).innerText();
  assert.match(first, new RegExp(await rows(page).and(page.locator("[aria-current]")).locator("bdi").innerText()), "the list does not show whose it is");
  await accessible(page, "looking one by one");
  for (const left of ["40", "39", "38"]) {
    await page.keyboard.press("r");
    await shows(chip(page, /Ready/), left);
  }
  assert.notEqual(await panel.getByRole("heading", { level: 2 }).innerText(), first, "the next one follows");
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  await page.keyboard.press("Control+Enter");
  await shows(page.locator(".toast"), "38 reviewed.");
  await page.getByRole("button", { name: /^Reviewed/ }).click();
  await page.getByRole("region", { name: "Reviewed, ready to send" }).waitFor();
  await page.getByRole("button", { name: /^To review/ }).click();
}

// After returning from an entry, filters and page are unchanged; a review leads to the next entry.
async function cameBack(page) {
  await page.getByRole("tab", { name: "Entries" }).click();
  await page.getByLabel("State").selectOption("reviewed");
  const pages = page.getByRole("navigation", { name: "Pages of Billing entries" });
  await shows(pages, "1–20");
  await pages.getByRole("button", { name: "Next" }).click();
  await shows(pages, "21–");
  await page.locator("tbody tr[data-key] button.link").first().click();
  await heading(page, /^CLM/).waitFor();
  const claim = await heading(page, /^CLM/).innerText();
  await page.getByRole("button", { name: /^Next/ }).click();
  await page.waitForFunction((was) => document.querySelector("h1")?.textContent !== was, claim);
  await page.getByRole("button", { name: "All entries" }).click();
  await shows(pages, "21–");
  assert.equal(await page.getByLabel("State").inputValue(), "reviewed");
  await accessible(page, "the entries");
}

// A claim is found from any page, by its number and by its patient.
async function foundAnywhere(page) {
  const row = await page.locator("tbody tr[data-key]").first().innerText();
  const claim = row.match(/CLM-\d+-\d+/)[0], name = await page.locator("tbody tr[data-key] bdi").first().innerText();
  await section(page, "Reports").click();
  const box = page.getByRole("dialog", { name: "Find a patient, a person, a page or an action" });
  for (const term of [name, claim]) {
    await page.keyboard.press("Control+k");
    await box.getByRole("combobox").fill(term);
    await box.getByRole("option", { name: /^CLM-/ }).first().waitFor();
    await page.keyboard.press(term === claim ? "Enter" : "Escape");
    await box.waitFor({ state: "detached" });
  }
  await heading(page, claim).waitFor();
  await section(page, "Billing").click();
  await page.getByRole("tab", { name: "Entries" }).click();
}

async function exported(page) {
  await page.getByRole("button", { name: "Export reviewed" }).click();
  const dialog = page.getByRole("dialog");
  assert.equal(await dialog.getByLabel("Claims").inputValue(), "reviewed");
  const asked = page.waitForRequest(/claims-exports/);
  const file = page.waitForEvent("download");
  await dialog.getByRole("button", { name: "Export", exact: true }).click();
  assert.match((await asked).url(), /status=reviewed/);
  assert.match((await file).suggestedFilename(), /\.csv$/);
  await dialog.waitFor({ state: "detached" });
}

// A report and its parameters are in the URL, so that going back restores it.
async function reports(page) {
  await section(page, "Reports").click();
  await page.getByRole("button", { name: "Claims by state" }).click();
  await page.getByLabel("From").fill(input.from);
  await settled(page);
  assert.match(page.url(), /report=claims-status/);
  assert.match(page.url(), new RegExp(`date_from=${input.from}`));
  await section(page, "Billing").click();
  await page.goBack();
  await page.getByRole("heading", { level: 2, name: "Claims by state" }).waitFor();
  assert.equal(await page.getByLabel("From").inputValue(), input.from);
  await page.getByRole("button", { name: "Tasks" }).click();
  for (const figure of ["Open balances", "Unposted remittances", "Evidence changed", "Billing rules of the year"]) {
    await shows(page.locator("main"), figure);
  }
}

// A sent file shows the outcome of its lines.
async function answered(page) {
  const file = {
    id: "0190b2c4-0000-7000-8000-00000000000a", interchange_control_number: "000465120", usage: "P", claims: 6, lines: 11, total_charge: 479.67,
    status: "partly_accepted", created_by: "billing@vigil.example", created_at: new Date().toISOString(),
    answers: { sent_back: 2, paid: 7, denied: 2, voided: 0, sent_again: 0, open: 0 },
  };
  await page.route("**/api/v1/billing/claim-batches/?*", (route) => route.fulfill({ json: { count: 1, next: null, previous: null, results: [file] } }));
  await section(page, "Billing").click();
  await shows(page.getByRole("region", { name: "Batches and responses" }).getByRole("listitem"), "7 paid, 2 denied, 2 returned");
}

// A file with payments is shown before it is posted.
async function previewed(page) {
  const remittance = {
    id: "0190b2c4-0000-7000-8000-00000000000c", claim_response_id: "0190b2c4-0000-7000-8000-00000000000b", payer: "ACME", trace_number: "EFT-77",
    payment_amount: 70, payment_date: "2026-01-15", method: "ACH", posted: 20, unposted: 50, provider_adjustments: [], status: "open", notes: null,
    closed_by: null, closed_at: null, created_at: null,
    items: [{ ordinal: 1, segment: "CLP", claim_control_number: "UNKNOWN1", payer_control_number: "ICN7", reference: null, code: "1", entry_ids: [], amount: 50,
      reason: "unknown_claim", reason_text: "No claim has this number.", notes: null, closed_by: null, closed_at: null }],
    lines: [{ entry_id: "0190b2c4-0000-7000-8000-000000000009", claim_id: "CLM-2026-000001", cpt_code: "99457", claim_control_number: "V1",
      payer_control_number: "ICN1", kind: "payment", amount: 20, paid_code: "99470", warnings: ["other_code"] }],
  };
  let posted = 0;
  await page.route("**/api/v1/billing/claim-responses/preview/", (route) => route.fulfill({ json: {
    type: "835", control_number: "77", applied: 1, unmatched: 1, repeated: false, remittances: [remittance] } }));
  await page.route("**/api/v1/billing/claim-responses/", (route) => {
    posted++;
    return route.fulfill({ json: { type: "835", applied: 1, unmatched: 1, repeated: false } });
  });
  await page.getByRole("tab", { name: "Responses" }).click();
  const choose = async () => {
    await page.getByLabel("Upload 999, 277CA or 835").setInputFiles({ name: "march.835", mimeType: "text/plain", buffer: Buffer.from("ISA*00") });
    return page.getByRole("dialog", { name: "Before posting" });
  };
  const dialog = await choose();
  await shows(dialog, "EFT-77");
  await shows(dialog, "No claim has this number.");
  await accessible(page, "a payment before posting");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.equal(posted, 0, "the file is posted before a person agrees");
  await (await choose()).getByRole("button", { name: "Post", exact: true }).click();
  await page.getByText("march.835: 1 lines posted, 1 need review.").waitFor();
  assert.equal(posted, 1);
}

// A denial shows its reason in words, what to do, and the days left.
async function denials(page) {
  const now = new Date(), by = new Date(Date.UTC(now.getFullYear(), now.getMonth(), now.getDate() + 12)).toISOString().slice(0, 10);
  await page.route("**/api/v1/billing/entries/?*status=denied*", async (route) => {
    const answer = await (await route.fetch({ url: route.request().url().replace("status=denied", "status=paid") })).json();
    const denial = { code: "CO-50", description: "not deemed medically necessary", date: "2026-01-15", remarks: ["N130"], next_step: "appeal", refile_by: null };
    answer.results = [{ ...answer.results[0], id: "0190b2c4-0000-7000-8000-000000000009", claim_id: "CLM-2026-000001", patient_name: "Ada Lovelace",
      cpt_code: "99457", service_date: "2026-01-02", payer: "Acme", open: 75, denial: { ...denial, appeal_by: by } }];
    await route.fulfill({ json: { ...answer, count: 1 } });
  });
  await page.getByRole("tab", { name: "Denials" }).click();
  const row = page.getByRole("region", { name: "Denied claims" }).locator("tbody tr").first();
  for (const text of ["CO-50: not deemed medically necessary", "Appeal", "12 days left"]) {
    await shows(row, text);
  }
  await accessible(page, "the denials");
}
