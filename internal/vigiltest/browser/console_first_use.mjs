// Obstacles of a new user who did a practice's tasks without help: each is removed.
import assert from "node:assert/strict";
import { run, shows } from "./browser.mjs";
import { section, settled, signIn, signOff } from "./console.mjs";

const dialog = (page) => page.getByRole("dialog");
const focused = (page) => page.evaluate(() => document.activeElement.name);

await run(async (page) => {
  await signIn(page, "nurse@vigil.example");
  await sides(page);
  const who = await atTheSide(page);
  await onTheSheet(page);
  await enrol(page);
  await signOff(page);
  await signIn(page, "billing@vigil.example");
  await daysShort(page);
  await signOff(page);
  await signIn(page, "manager@vigil.example");
  await wholeWeek(page);
  return { who };
});

// A value equal to the bound is on the side that the message states.
async function sides(page) {
  const said = (parameter, value, threshold, message) => page.evaluate((latest) =>
    consoleModule("views/alerts/labels.js").then(({ causeOf }) => causeOf({ type: "vitals", latest })), { parameter, value, threshold, message });
  assert.equal(await said("spo2", 92, 92, "SpO2 92 % is at or below the warning limit 92."), "SpO₂ at or below 92");
  assert.equal(await said("systolic", 140, 140, "Systolic 140 mmHg is at or above the warning limit 140. Diastolic 60 mmHg is at or below the warning limit 60."), "Systolic at or above 140");
  assert.equal(await said("spo2", 88, 92, ""), "SpO₂ at or below 92");
}

// A dialog opens with the focus in its first field, not on the close button; the user who acknowledged is named.
async function atTheSide(page) {
  await settled(page);
  await page.locator(".triage > .row").first().click();
  const side = page.locator("aside.drawer");
  await side.locator(".causes li").first().waitFor();
  await page.keyboard.press("e");
  await dialog(page).getByLabel("Priority").waitFor();
  assert.equal(await focused(page), "priority");
  await dialog(page).getByLabel("Reason").fill("Rising since Friday.");
  await page.keyboard.press("Control+Enter");
  await dialog(page).waitFor({ state: "detached" });
  await shows(page.locator(".toast"), /^Escalated to /);
  await shows(side.locator(".escalation"), "Urgent escalation to Priya Raman");
  assert.doesNotMatch(await side.innerText(), /@vigil\.example/, "an email says who");
  await side.getByRole("button", { name: "Open chart" }).click();
  return "Priya Raman";
}

// Open items name their owners; the record's menu closes when the focus leaves it by Tab.
async function onTheSheet(page) {
  const work = page.getByRole("region", { name: "Open work" });
  await shows(work, "Urgent escalation, Priya Raman");
  assert.doesNotMatch(await work.innerText(), /@vigil\.example/, "an email says who");
  const more = page.locator(".more-acts");
  await more.locator("summary").focus();
  await page.keyboard.press("Enter");
  await more.getByRole("button", { name: "Edit" }).waitFor();
  while (await more.evaluate((node) => node.contains(document.activeElement))) {
    await page.keyboard.press("Tab");
  }
  await more.getByRole("button", { name: "Edit" }).waitFor({ state: "hidden" });
}

// A nurse orders on behalf of the provider, and is not refused because of a team that others assign.
async function enrol(page) {
  await section(page, "Enrollment").click();
  await page.getByRole("button", { name: "Enroll patient" }).click();
  await page.getByLabel("First name").fill("Rosa");
  await page.getByLabel("Last name").fill("Lindqvist");
  await page.getByLabel("Date of birth").fill("1951-03-04");
  await page.getByRole("button", { name: "Save and continue" }).click();
  await page.getByRole("heading", { name: "Consent" }).waitFor();
  await page.getByRole("navigation", { name: "Enrollment steps" }).getByRole("button", { name: /Order and diagnosis/ }).click();
  const provider = page.getByRole("combobox", { name: "Ordering provider" });
  await provider.fill("Raman");
  await page.getByRole("option", { name: /Priya Raman/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Remove Priya Raman" }).waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Care team" }).isEditable(), false);
  await page.getByRole("button", { name: "Monitoring order date: today" }).click();
  await page.getByLabel("Order details").fill("Blood pressure, daily");
  await page.getByRole("button", { name: "Save and continue to thresholds" }).click();
  await shows(page.getByRole("navigation", { name: "Enrollment steps" }).locator("[aria-current=step]"), /^(?!.*Order and diagnosis)/); // the next step
  assert.equal(await page.getByText("You do not have permission").count(), 0);
}

// Patients short of days are found without those short of minutes.
async function daysShort(page) {
  await section(page, "Billing").click();
  await settled(page);
  const reach = page.getByRole("region", { name: /^Almost billable/ }).getByRole("button").last();
  const unit = /days? short/.test(await reach.innerText()) ? "days" : "minutes";
  await reach.click();
  const which = page.getByLabel("Missing", { exact: true });
  assert.equal(await which.inputValue(), unit);
  const count = async (wanted) => {
    const asked = (url) => /near-billable\/.*page_size/.test(url) && (new URL(url).searchParams.get("unit") ?? "") === wanted;
    const [answer] = await Promise.all([page.waitForResponse((one) => asked(one.url())), which.selectOption(wanted)]);
    const found = await answer.json();
    const said = found.results.map(({ have, needed, unit }) => `${have} of ${needed} ${unit}`);
    await page.waitForFunction((texts) => texts === [...document.querySelectorAll(".near span")].map((node) => node.textContent).join(), said.join());
    assert.ok(said.every((text) => text.endsWith(wanted)), `${wanted}: ${said}`);
    return found.count;
  };
  const [all, days, minutes] = [await count(""), await count("days"), await count("minutes")];
  assert.ok(all > 0 && all === days + minutes, `${all} are ${days} and ${minutes}`);
}

// The practice's weekly hours are set in one step for all similar days.
async function wholeWeek(page) {
  await section(page, "Escalations").click();
  await page.getByRole("button", { name: "On call" }).click();
  await page.getByRole("button", { name: "Add a shift" }).click();
  await dialog(page).getByLabel("Starts on").selectOption("Monday to Friday");
  await dialog(page).getByLabel("Who").selectOption({ index: 1 });
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await dialog(page).waitFor({ state: "detached" });
  const week = page.getByRole("region", { name: "Weekly schedule" });
  await shows(week, "19:00–07:00");
  assert.equal(await week.getByRole("listitem").count(), 5);
  await shows(week, "by you");
}
