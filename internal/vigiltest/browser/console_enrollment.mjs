// A patient is enrolled from the name to the wait for the first reading, with mistakes, and every click and key is counted;
// then the same for a patient imported from the EMR.
import assert from "node:assert/strict";
import { input, refused, run, shows } from "./browser.mjs";
import { accessible, heading, section, settled, signIn, signOff } from "./console.mjs";

const spent = { clicks: 0, keys: 0 };
const click = async (locator) => { spent.clicks++; await locator.click(); };
const type = async (page, text) => { spent.keys += text.length; await page.keyboard.type(text); };
const press = async (page, key) => { spent.keys++; await page.keyboard.press(key); };
const into = async (page, locator, text) => { await click(locator); await type(page, text); };

// picks types the start of a value into a combo box and selects the first suggestion.
async function picks(page, label, beginning, want) {
  const box = page.getByRole("combobox", { name: label, exact: true });
  await click(box);
  await type(page, beginning);
  await press(page, "Enter");
  await shows(page.locator(".combo", { has: box }).locator(".chip"), want);
}

const step = (page, name) => page.getByRole("heading", { level: 2, name, exact: true }).waitFor();
const save = async (page) => press(page, "Control+Enter");
const rail = (page, name) => page.getByRole("navigation", { name: "Enrollment steps" }).getByRole("button", { name });

await run(async (page) => {
  if (input.chart) { // the practice reads the EMR's chart
    await signIn(page, "ma@vigil.example");
    return { brought: await bringOver(page) };
  }
  await signIn(page, "nurse@vigil.example");
  const anew = await enrol(page);
  await unfinished(page);
  await sheet(page);
  await dialog(page);
  await signOff(page);
  await signIn(page, "ma@vigil.example"); // nurses cannot import patients
  return { ...anew, brought: await bringOver(page) };
}, { tolerate: /status of 400/ }); // two fields of one form can be refused at once

async function enrol(page) {
  await click(section(page, "Enrollment"));
  await settled(page);
  await click(page.getByRole("button", { name: "Enroll patient" }));
  await step(page, "Patient");
  await accessible(page, "a new patient");

  // Two errors are shown at their fields and in the summary, which links to them.
  await into(page, page.getByLabel("First name"), "Beatriz");
  await into(page, page.getByLabel("Last name"), input.last);
  await page.getByLabel("Date of birth").fill("2999-01-01");
  await page.getByLabel("Phone").fill("12");
  await refused(page, () => page.keyboard.press("Control+Enter"));
  await shows(page.getByRole("alert"), "2 fields to correct:");
  await page.getByRole("alert").getByRole("button", { name: "Phone" }).click();
  assert.equal(await page.evaluate(() => document.activeElement.name), "phone", "the summary leads to the field");
  await page.getByLabel("Date of birth").fill("1958-03-14");
  spent.keys += 8; // a date has eight digits
  await page.getByLabel("Phone").fill("");
  await into(page, page.getByLabel("Phone"), "2175550142");
  for (const [name, value] of [["Street", "12 Elm Street"], ["City", "Springfield"], ["State", "IL"], ["ZIP", "62704"]]) {
    await into(page, page.getByLabel(name), value);
  }
  await page.getByLabel("Gender").selectOption("female");
  spent.keys += 2;
  await picks(page, "Time zone", "chic", "America/Chicago");
  await save(page);

  await step(page, "Consent");
  await shows(heading(page), `Beatriz ${input.last}`);
  await accessible(page, "consent");
  await shows(rail(page, /Payer/), "1 missing");
  await shows(page.getByRole("complementary"), "Billing not ready");
  await click(page.getByRole("button", { name: "Insert standard text" }));
  await save(page);

  await step(page, "Payer");
  await accessible(page, "the payer");
  await picks(page, "Payer", "zwick", input.payer);
  await into(page, page.getByLabel("Member ID").first(), "ZM-4471-22");
  await save(page);

  await step(page, "Order and diagnosis");
  await accessible(page, "the order");
  await picks(page, "Ordering provider", input.provider.slice(0, 4), input.provider);
  await picks(page, "Diagnoses", "heart fail", "I50.9 Heart failure, unspecified");
  await picks(page, "Diagnoses", "I10", "I10 Essential (primary) hypertension");
  // An invalid code is reported with its position, and a code that was typed but not selected is not dropped silently.
  await page.getByLabel("Monitoring order date", { exact: true }).fill(`${new Date().getFullYear() + 1}-01-01`);
  const diagnoses = page.getByRole("combobox", { name: "Diagnoses" });
  await diagnoses.fill("U07.1");
  await shows(page.locator(".combo", { has: diagnoses }).getByRole("status"), "No codes match");
  await page.keyboard.press("Control+Enter");
  await shows(page.locator(".combo", { has: diagnoses }).getByRole("alert"), "“U07.1” is not added yet");
  await diagnoses.press("Enter");
  await shows(page.locator(".chip"), "U07.1 (not in the list)");
  await refused(page, () => page.keyboard.press("Control+Enter"));
  await shows(page.getByRole("alert"), "2 fields to correct:");
  await shows(page.locator(".combo", { has: diagnoses }).getByRole("alert"), "No. 3:");
  await shows(page.locator(".field", { has: page.getByLabel("Monitoring order date", { exact: true }) }).getByRole("alert"), "future");
  await page.getByRole("button", { name: "Remove U07.1 (not in the list)" }).click();
  await click(page.getByRole("button", { name: "Monitoring order date: today" }));
  await save(page);

  await step(page, "Device and teaching");
  await accessible(page, "the device");
  await into(page, page.getByLabel("Device number"), input.device);
  await click(page.getByLabel(/^Device is set up/));
  await save(page);

  await step(page, "First reading");
  await shows(page.getByRole("main"), "Waiting for the device. No action is needed");
  await accessible(page, "the wait for the first reading");
  assert.ok(!/[0-9a-f]{8}-|Beatriz/.test(page.url() + await page.title()), "the address tells whom it is about");
  const cost = { ...spent };
  await rail(page, /Thresholds/).click();
  await step(page, "Thresholds");
  await accessible(page, "thresholds");
  return { cost };
}

async function unfinished(page) {
  await section(page, "Enrollment").click();
  await settled(page);
  await accessible(page, "unfinished enrolments");
  await shows(page.locator("tbody tr", { hasText: input.last }), "The patient is not linked to a record of the EMR");
  await page.getByLabel("Blocks").selectOption("claims");
  await page.locator("tbody tr", { hasText: input.last }).first().waitFor({ state: "detached" });
  assert.match(page.url(), /stops=claims/, "filters stand in the address");
  for (const width of [1400, 390]) {
    await page.setViewportSize({ width, height: 1000 });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width, `unfinished enrolments are wider than ${width}`);
  }
  await page.setViewportSize({ width: 1400, height: 1000 });
}

// sheet: missing facts are listed, with links to where they are entered.
async function sheet(page) {
  await section(page, "Patients").click();
  await settled(page);
  await page.getByLabel("Name or MRN").fill(input.unfinished);
  await page.locator("tbody button.link", { hasText: input.unfinished }).click();
  const missing = page.getByRole("region", { name: /^◆? ?Enrollment: \d+ missing/ });
  await missing.getByRole("button", { name: "No consent to monitoring is in force" }).click();
  await step(page, "Consent");
  for (const width of [1440, 700, 390]) { // 700 is 1400 at 200 %
    await page.setViewportSize({ width, height: 900 });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width, `the path is wider than ${width}`);
  }
  await page.setViewportSize({ width: 1400, height: 1000 });
  await page.getByRole("button", { name: "Save and exit" }).click();
  await missing.waitFor();
}

// dialog: the remaining facts are entered in the patient's dialog and stored.
async function dialog(page) {
  await page.getByRole("button", { name: "More", exact: true }).or(page.locator("summary", { hasText: /More|⋯/ })).first().click();
  await page.getByRole("button", { name: "Edit", exact: true }).first().click();
  const box = page.getByRole("dialog");
  await accessible(page, "the patient's dialog");
  await box.getByText("IDs (MRN").click();
  await box.getByLabel("Social security number").fill("078-05-1121");
  await picks(page, "Payer", "zwick", input.payer);
  await box.getByLabel("Member ID").first().fill("ZM-9");
  await box.getByLabel("Patient’s relationship to subscriber").first().selectOption("spouse");
  await box.getByLabel("Subscriber’s last name").fill("Example");
  await picks(page, "Time zone", "denv", "America/Denver");
  await picks(page, "Primary provider", input.provider.slice(0, 4), input.provider);
  await box.getByLabel("Readings expected").selectOption("own");
  await box.getByLabel("Weight", { exact: true }).selectOption("2");
  await refused(page, () => box.getByRole("button", { name: "Save" }).click());
  await shows(box.getByRole("alert"), "Fill this in.");
  assert.equal(await page.evaluate(() => document.activeElement.name), "insurance.subscriber.first_name", "the one field that is wrong has the focus");
  await box.getByLabel("Subscriber’s first name").fill("Sam");
  await box.getByRole("button", { name: "Save" }).click();
  await box.waitFor({ state: "detached" });
}

// accepts takes over what the EMR's chart proposes in a step.
async function accepts(page, ...texts) {
  for (const text of texts) {
    const one = page.getByRole("list", { name: "Proposed from the EMR" }).getByRole("listitem").filter({ hasText: text });
    await click(one.getByRole("button", { name: "Accept" }));
    await one.waitFor({ state: "detached" });
    await page.waitForFunction(() => document.activeElement?.closest(".enrol-work")); // the keyboard stays in the step
  }
  await click(page.getByRole("button", { name: /^Save and continue/ }));
}

// bringOver: an imported patient continues at the missing facts, in the same steps.
async function bringOver(page) {
  await section(page, "EMR").click();
  await page.getByRole("tab", { name: "Import patients" }).click();
  await page.getByLabel("Show up to").fill("100");
  await page.getByRole("button", { name: "Search" }).click();
  const box = page.getByRole("checkbox", { name: /^Select / }).first();
  const row = page.locator("tbody tr").filter({ has: box });
  const mrn = await row.locator("td").nth(2).innerText();
  const chosen = page.locator("tbody tr", { hasText: mrn });
  Object.assign(spent, { clicks: 0, keys: 0 });
  await click(box);
  await picks(page, "Primary provider", input.provider.slice(0, 4), input.provider);
  await click(page.getByRole("button", { name: "Import one patient" }));
  await click(chosen.getByRole("button", { name: "Continue enrollment" }));
  await step(page, "Consent");
  await shows(page.getByRole("main"), "Linked to the EMR");
  await click(page.getByRole("button", { name: "Insert standard text" }));
  await save(page);
  await step(page, "Payer");
  if (input.chart) {
    await accessible(page, "the payer, with what the EMR proposes");
    await accepts(page, "Insurance");
  } else {
    await picks(page, "Payer", "zwick", input.payer);
    await into(page, page.getByLabel("Member ID").first(), "ZM-1");
    await save(page);
  }
  await step(page, "Order and diagnosis");
  if (input.chart) {
    await accepts(page, "Order of", "Diagnosis", "Visit on");
  } else {
    await picks(page, "Diagnoses", "htn", "I10 Essential (primary) hypertension");
    await click(page.getByRole("button", { name: "Monitoring order date: today" }));
    await save(page);
  }
  await step(page, "Device and teaching");
  await into(page, page.getByLabel("Device number"), `${input.device}-2`);
  await click(page.getByLabel(/^Device is set up/));
  await save(page);
  await step(page, "First reading");
  return { mrn, ...spent };
}
