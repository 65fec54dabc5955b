// Obstacles of later new users, one part for each.
import assert from "node:assert/strict";
import { input, run, shows } from "./browser.mjs";
import { section, settled, signIn, signOff } from "./console.mjs";
import { sendReading, signedIn } from "./service.mjs";

// User and task.
const tasks = {
  onTheList: ["nurse@vigil.example", onTheList],
  panel: ["nurse@vigil.example", panel],
  thresholds: ["nurse@vigil.example", thresholds],
  onCall: ["nurse@vigil.example", onCall],
  daysShort: ["nurse@vigil.example", daysShort],
  fastEnter: ["nurse@vigil.example", fastEnter],
  timerAndTexts: ["nurse@vigil.example", timerAndTexts],
  unlink: ["admin@vigil.example", unlink],
  batch: ["billing@vigil.example", batch],
};

await run(async (page) => {
  const done = [];
  for (const [name, [who, task]] of Object.entries(tasks).filter(([name]) => !input.only || name === input.only)) {
    await signIn(page, who);
    await settled(page);
    await task(page);
    await signOff(page);
    done.push(name);
  }
  return done;
});

/** Whether somebody sees the whole of something, and nothing lies over it. */
function inSight(locator) {
  return locator.evaluate((node) => {
    const { left, right, top, bottom } = node.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight && node.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2));
  });
}

// A row that is notified again still shows the number of days, and keeps its layout.
async function onTheList(page) {
  await shows(page.locator(".stream"), /^Live$/);
  const days = /Out of range on \d of \d days/;
  const row = page.locator(`.triage > .row[data-id="${await page.locator(".triage > .row", { hasText: days })
    .filter({ has: page.locator(".value", { hasText: /mmHg/ }) }).first().getAttribute("data-id")}"]`);
  const points = () => row.locator(".spark .line").evaluate((line) => line.getAttribute("d").split(/[ML]/).length);
  const before = await points();
  await sendReading("NEWCOMER-1", await row.getAttribute("data-id"), { systolic: 213, diastolic: 121, pulse: 90 });
  await row.locator(".value b", { hasText: "213/121" }).waitFor();
  assert.match(await row.locator(".why").innerText(), days, "the row no longer says on how many days");
  assert.ok(await points() >= before, "the line is gone");
}

// The top of the side panel is not covered by the header, whatever its height.
async function panel(page) {
  for (const [width, height] of [[1280, 800], [700, 900], [390, 844]]) {
    await page.setViewportSize({ width, height });
    await page.locator(".triage > .row").first().click();
    const side = page.locator("aside.drawer");
    await side.locator(".causes li").first().waitFor();
    for (const what of ["Open chart", "Close the panel"]) {
      assert.ok(await inSight(side.getByRole("button", { name: what })), `“${what}” is out of sight at ${width}`);
    }
    await side.getByRole("button", { name: "Close the panel" }).click();
  }
  await page.setViewportSize({ width: 1400, height: 1000 });
}

// A user who has changed a bound sees and completes the related fields without a search.
async function thresholds(page) {
  await page.locator(".triage > .row").first().click();
  await page.locator("aside.drawer").getByRole("button", { name: "Open chart" }).click();
  await page.getByRole("navigation", { name: "About this patient" }).getByRole("button", { name: "Thresholds" }).click();
  for (const [width, height] of [[1280, 800], [390, 844]]) {
    await page.setViewportSize({ width, height });
    const bound = page.getByLabel("Systolic: critical at or below");
    await bound.scrollIntoViewIfNeeded();
    await bound.fill("171");
    for (const what of [page.getByLabel("Reason for change"), page.getByRole("button", { name: "Save thresholds" })]) {
      assert.ok(await inSight(what), `${what} is out of sight at ${width}`);
    }
  }
  const bar = await page.locator(".phone-bar").evaluate((node) => node.getBoundingClientRect().top).catch(() => Infinity);
  const foot = await page.locator(".form-foot").evaluate((node) => node.getBoundingClientRect().bottom);
  assert.ok(foot <= bar, `the bar of the phone covers ${foot - bar} pixels`);
  await page.setViewportSize({ width: 1400, height: 1000 });
}

// The on-call rota is in the menu, and has a way back.
async function onCall(page) {
  await section(page, "On call").click();
  await page.getByRole("heading", { level: 1, name: "On call" }).waitFor();
  await page.getByRole("main").getByRole("button", { name: "Escalations" }).click();
  await page.getByRole("heading", { level: 1, name: "Escalations" }).waitFor();
}

// A nurse finds whom to call to reach sixteen days, the time left, and the phone number, which offers the timer.
async function daysShort(page) {
  await section(page, "Patients").click();
  await page.getByRole("tab", { name: "Behind on days" }).click();
  await page.getByLabel("Show").selectOption("All who still need days");
  const row = page.getByRole("region", { name: "Patients behind on days" }).locator("tbody tr").first();
  await shows(row, /\d+ of (2|16)/);
  assert.match(await row.innerText(), /\d+ days? left|\d+ days?\s+until/);
  const call = row.getByRole("link");
  assert.match(await call.getAttribute("href"), /^tel:\+?\d+$/);
  await call.evaluate((link) => { link.addEventListener("click", (event) => event.preventDefault()); link.click(); });
  await page.getByRole("button", { name: "Time this call" }).waitFor();
}

// Without a possible delivery there is no send button; a created file shows its location and can be handed over.
async function batch(page) {
  const sheet = "**/api/v1/billing/month-end/**";
  await page.route(sheet, async (route) => {
    const answer = await (await route.fetch()).json();
    answer.results.forEach((row) => { row.in_batch = false; });
    await route.fulfill({ json: answer });
  });
  const next = page.getByRole("region", { name: "Next batch" });
  const toBeSent = async () => {
    await section(page, "Patients").click(); // billers start in Billing
    await section(page, "Billing").click();
    await page.locator(".funnel").getByRole("button", { name: /Reviewed/ }).click();
    await page.getByRole("heading", { name: "Reviewed, ready to send" }).waitFor();
    await shows(next, "pass preflight");
  };
  await toBeSent();
  await shows(next, "0 pass preflight");
  for (const where of [next, page.locator(".foot-of-sheet")]) {
    assert.ok(await where.getByRole("button", { name: "Create batch" }).isDisabled());
    await shows(where, /none of \d passes? preflight/);
  }
  await page.unroute(sheet);
  await section(page, "Inbox").click();
  await toBeSent();
  await next.getByRole("button", { name: /^Create batch of \d/ }).click();
  await shows(page.locator(".toast"), /^File \d+ created\. It is first under “Batches and responses”/);
  const saves = [page.locator(".toast").getByRole("button", { name: "Download the file" }),
    page.getByRole("region", { name: "Batches and responses" }).getByRole("button", { name: /^Save file/ }).first()];
  for (const save of saves) {
    const [file] = await Promise.all([page.waitForEvent("download"), save.click()]);
    assert.match(file.suggestedFilename(), /837/);
  }
}

/** Holds back what the service answers to a path until it is let go. */
async function held(page, path, change = (answer) => answer) {
  let go;
  const gone = new Promise((done) => { go = done; });
  await page.route(path, async (route) => {
    const answer = await (await route.fetch()).json();
    await gone;
    await route.fulfill({ json: change(answer) });
  });
  return async () => { go(); await page.unroute(path, { behavior: "wait" }); };
}

// Enter before the answer arrives applies to the typed text, also after moving on; among similar names it selects the same
// one.
async function fastEnter(page) {
  const call = await signedIn("nurse@vigil.example");
  const [patient] = (await call("GET", "patients/?page_size=1")).results;
  await section(page, "Escalations").click();
  await page.getByRole("button", { name: /^New escalation/ }).click();
  const dialog = page.getByRole("dialog");
  const patients = await held(page, "**/api/v1/patients/?search=*");
  const asked = page.waitForRequest(/patients\/\?search=/);
  await dialog.getByRole("combobox", { name: "Patient" }).pressSequentially(patient.mrn);
  await page.keyboard.press("Enter");
  await asked;
  await patients();
  await dialog.locator(".chip", { hasText: patient.last_name }).waitFor();
  const staff = await held(page, "**/api/v1/users/staff/**", (answer) => ({ ...answer,
    results: answer.results.flatMap((one) => (one.name === "Priya Raman" ? [{ ...one, id: 999, name: "Priya Ramanathan", email: "other@vigil.example" }, one]
      : [one])) }));
  const whom = dialog.getByRole("combobox", { name: "Assign to" });
  await whom.pressSequentially("Priya Raman");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await staff();
  await dialog.getByRole("button", { name: /^Remove Priya/ }).waitFor();
  await dialog.getByRole("button", { name: "Remove Priya Raman", exact: true }).waitFor();
  assert.ok(!await whom.evaluate((node) => node === document.activeElement), "the focus came back by itself");
  await dialog.getByRole("button", { name: "Cancel" }).click();
}

// Stopping the timer shows the minutes that it logs; a slash and a name insert any of many templates.
async function timerAndTexts(page) {
  const manager = await signedIn("manager@vigil.example");
  const known = (await manager("GET", "note-templates/?page_size=1")).count;
  assert.ok(known >= 5, `the practice has ${known} note templates`);
  for (let i = known; i <= 100; i++) {
    await manager("POST", "note-templates/", { name: `Filler ${i}`, context: "note", text: `Filler ${i}` });
  }
  await manager("POST", "note-templates/", { name: "Zinc, asked", context: "note", text: "Asked about zinc." });
  await page.locator(".triage > .row").first().click();
  await page.locator("aside.drawer").getByRole("button", { name: "Open chart" }).click();
  await page.getByRole("button", { name: "Start timer" }).click();
  await page.getByRole("group", { name: "Your timer" }).getByRole("button", { name: /^Stop/ }).click();
  const dialog = page.getByRole("dialog");
  await shows(dialog, /\d+ min \d+ s will be logged/);
  const note = dialog.getByLabel("Notes");
  await note.pressSequentially("Spoke. /zin");
  const menu = dialog.getByRole("listbox", { name: "Note templates" });
  await menu.getByRole("option", { name: /Zinc/ }).waitFor();
  assert.ok(await inSight(menu), "the templates are out of sight");
  await page.keyboard.press("Escape");
  await menu.waitFor({ state: "detached" });
  await page.keyboard.type("c");
  await menu.waitFor();
  await page.keyboard.press("Enter");
  assert.equal(await note.inputValue(), "Spoke. Asked about zinc.");
  await note.pressSequentially(" 120/80, and/or");
  assert.equal(await menu.count(), 0, "a slash within a word opened the templates");
  await dialog.getByRole("button", { name: "Stop and log" }).click();
  await shows(page.locator(".toast"), "Time logged.");
}

// An administrator removes a user's link to the practice's identity provider.
async function unlink(page) {
  await page.route("**/api/v1/auth/oidc/", (route) => route.fulfill({ json: { offered: true, required: false } }));
  await section(page, "Operations").click();
  await page.getByRole("tab", { name: "Users" }).click();
  await page.getByRole("region", { name: "Users" }).getByRole("button", { name: /Raman/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Unlink single sign-on" }).click();
  await page.route("**/api/v1/users/*/identity/", (route) => route.fulfill({ status: 204 }));
  const [request] = await Promise.all([page.waitForRequest(/users\/\d+\/identity\/$/), dialog.getByRole("button", { name: "Unlink the account" }).click()]);
  assert.equal(request.method(), "DELETE");
  await shows(page.locator(".toast"), "Done.");
  await dialog.getByRole("button", { name: "Close", exact: true }).click();
  await page.unroute("**/api/v1/auth/oidc/");
}
