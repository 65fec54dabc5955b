// The elements around every view: keys, form errors, the URL's content, assignment, time zones, search, the timer, the
// title, permissions and units. INPUT selects the part; each signs in again.
import assert from "node:assert/strict";
import { input, run, shows, until } from "./browser.mjs";
import { accessible, heading, section, settled, signIn } from "./console.mjs";
import { sendReading } from "./service.mjs";

const parts = { keys, errors, address, staff, zones, find, timer, title, rights, units, narrow };

const finder = (page) => page.getByRole("dialog", { name: "Find a patient, a person, a page or an action" });

// look opens a patient by MRN through the search.
async function look(page, mrn) {
  await page.getByRole("banner").getByRole("button", { name: /Find a patient/ }).waitFor();
  await page.keyboard.press("Control+k");
  await finder(page).getByRole("combobox").fill(mrn);
  await finder(page).getByRole("option", { name: mrn }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "About this patient" }).waitFor();
  await settled(page);
}

const tab = (page, name) => page.getByRole("navigation", { name: "About this patient" }).getByRole("button", { name });

// Single keys act only outside text fields and dialogs, and never with Alt: Option and E is é on a Mac.
async function keys(page) {
  await signIn(page, "nurse@vigil.example");
  for (let n = 0; n < 5 && !await heading(page, "Patients").isVisible(); n++) { // on a slow machine the first keys may come before the page listens
    await page.keyboard.press("g");
    await page.keyboard.press("p");
    await heading(page, "Patients").waitFor({ timeout: 9000 }).catch(() => {});
  }
  await heading(page, "Patients").waitFor();
  await look(page, input.mrn);
  const name = await page.getByRole("heading", { level: 1 }).innerText();
  for (const key of ["Alt+t", "Alt+a", "Alt+p", "Alt+e", "Control+e", "Meta+a"]) {
    await page.keyboard.press(key);
  }
  assert.equal(await page.getByRole("heading", { level: 1 }).innerText(), name, "a key with Alt left the page");

  await page.getByRole("button", { name: /^Escalate/ }).first().click();
  const dialog = page.getByRole("dialog");
  const note = dialog.getByLabel("Reason");
  await note.pressSequentially("Caf");
  await note.evaluate((field) => {
    for (const [key, code] of [["é", "KeyE"], ["å", "KeyA"], ["†", "KeyT"]]) {
      field.dispatchEvent(new KeyboardEvent("keydown", { key, code, altKey: true, bubbles: true, cancelable: true }));
    }
  });
  await page.keyboard.insertText("é");
  await note.pressSequentially(" gt?");
  await page.keyboard.press("Alt+t");
  assert.equal(await note.inputValue(), "Café gt?", "the note is another");
  await dialog.getByRole("button", { name: "Cancel" }).focus(); // a button is not a text field, and the dialog is still open
  for (const key of ["g", "t", "?", "Alt+a"]) {
    await page.keyboard.press(key);
  }
  assert.equal(await dialog.count(), 1);
  assert.equal(await note.inputValue(), "Café gt?", "the note was lost");
  await dialog.getByRole("button", { name: "Cancel" }).click();

  await page.keyboard.press("?");
  await shows(page.getByRole("dialog", { name: "Keyboard shortcuts" }), "Triage");
  await accessible(page, "the list of keys");
  await page.keyboard.press("Escape");
  await section(page, "Account").click();
  const act = async (on) => {
    await page.getByLabel("Single-key shortcuts").setChecked(on);
    await page.getByRole("button", { name: "Save display settings" }).click();
    await page.locator(".toast", { hasText: "Saved." }).waitFor();
    await page.locator(".toast").getByRole("button", { name: "Dismiss" }).click();
    await heading(page, "Account").click();
  };
  await act(false);
  await until(page, async () => !(await consoleModule("session.js")).display.peek().single_keys);
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  assert.equal(await page.getByRole("heading", { level: 1 }).innerText(), "Account", "keys that are switched off act");
  await act(true);
  await until(page, async () => (await consoleModule("session.js")).display.peek().single_keys);
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await heading(page, "Triage").waitFor();
  return {};
}

// Every form error is shown: of a field, of a nested field, and of a field that the form does not show.
async function errors(page) {
  await signIn(page, "admin@vigil.example");
  await section(page, "Operations").click();
  await page.getByRole("tab", { name: "Users" }).click();
  await page.getByRole("button", { name: "Add a user" }).click();
  const dialog = page.getByRole("dialog");
  const wrongs = dialog.locator(".wrongs");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await shows(wrongs, /fields to correct/);
  assert.ok(!/may not be null|is required/.test(await dialog.innerText()), "the form speaks to developers");
  await wrongs.getByRole("button", { name: "Last name" }).click();
  assert.equal(await page.evaluate(() => document.activeElement.name), "last_name");
  await accessible(page, "a form with errors");

  const said = { email: ["Is taken."], "address.zip": ["Five digits."], "icd10_codes.1": ["Z99.999 is no code."], non_field_errors: ["So it cannot be saved."] };
  await page.route("**/api/v1/auth/register/", (route) => route.fulfill({ status: 400, json: { detail: "Invalid.", code: "validation_error", field_errors: said } }));
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  for (const words of ["Is taken.", "Five digits.", "Z99.999 is no code.", "So it cannot be saved."]) {
    await shows(dialog, words);
  }
  await page.unroute("**/api/v1/auth/register/");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  return {};
}

// Filters, page and order are in the URL, names are not; going back and reloading restore them.
async function address(page) {
  await page.setViewportSize({ width: 1400, height: 480 });
  await signIn(page, "admin@vigil.example");
  await section(page, "Operations").click();
  await page.getByRole("tab", { name: "Audit" }).click();
  const pages = page.getByRole("navigation", { name: /^Pages of Audit trail/ });
  await page.getByLabel("Outcome").selectOption("0");
  await pages.getByRole("button", { name: "Next" }).click();
  await shows(pages, "51–100");
  const stands = async (how, outcome, who, listed) => {
    await shows(pages, listed);
    assert.equal(await page.getByLabel("Outcome").inputValue(), outcome, how);
    assert.equal(await page.getByLabel("Who").inputValue(), who, how);
  };
  const away = async () => { await section(page, "Inbox").click(); await heading(page, "Inbox").waitFor(); };
  for (const part of [/#\/operations\?/, /tab=audit/, /outcome=0/, /page=2/]) {
    assert.match(page.url(), part);
  }
  await away();
  await page.goBack();
  await stands("back", "0", "", "51–100");
  await page.reload();
  await stands("loaded anew", "0", "", "51–100");
  await page.getByLabel("Who").fill("admin@vigil.example");
  await page.keyboard.press("Tab");
  await shows(pages, /^(Previous)?\s*1–/); // another list starts at its first page
  assert.ok(!/page=|admin|%40/.test(page.url()), `the address says who was looked for: ${page.url()}`);
  await away();
  await page.goBack();
  await stands("back", "0", "admin@vigil.example", /1–/);
  await page.reload();
  await stands("loaded anew", "0", "admin@vigil.example", /1–/);

  await section(page, "Patients").click();
  await settled(page);
  const row = page.locator("tbody tr").last();
  await row.scrollIntoViewIfNeeded();
  const [scrolled, key] = [await page.evaluate(() => scrollY), await row.getAttribute("data-key")];
  assert.ok(scrolled > 50, "the list is too short to scroll");
  await row.getByRole("button").first().click();
  await page.getByRole("navigation", { name: "About this patient" }).waitFor();
  assert.ok(!page.url().includes(key), "the address tells who is looked at");
  await page.goBack();
  await page.waitForFunction((at) => Math.abs(scrollY - at) < 3, scrolled);
  await page.waitForFunction((id) => document.activeElement.closest("tr")?.dataset.key === id, key);
  return {};
}

// A nurse finds an assignee by a part of the name, by keyboard; the keys are counted.
async function staff(page) {
  await signIn(page, "nurse@vigil.example");
  await look(page, input.mrn);
  await page.getByRole("button", { name: /^Escalate/ }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("Gained two kilos, short of breath.");
  const picker = dialog.getByRole("combobox", { name: "Assign to" });
  let typed = 0;
  const press = async (key) => { typed++; await page.keyboard.press(key); };
  await picker.focus();
  await dialog.getByRole("option", { name: /Priya Raman/ }).waitFor(); // all users, before a key
  assert.ok(await dialog.getByRole("option").count() >= 4);
  assert.equal(await dialog.getByRole("option", { name: /Grace Hall|Dana Whitfield/ }).count(), 0, "work is offered to who cannot take it");
  for (const letter of "ram") {
    await press(letter);
  }
  await page.waitForFunction(() => document.querySelectorAll("dialog [role=option]").length === 1);
  await accessible(page, "the staff picker");
  await press("Enter");
  await shows(dialog.locator(".chip"), "Priya Raman");
  await press("Control+Enter");
  await dialog.waitFor({ state: "detached" });
  return { typed };
}

const moments = /\b[A-Z][a-z]{2} \d{1,2}, \d{1,2}:\d{2}\s[AP]M/g;

// Times are in the practice's zone in a browser of another zone, in the account's once it is set, and each table with times
// names its zone.
async function zones(page) {
  assert.equal(await page.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone), "Asia/Tokyo");
  await signIn(page, "nurse@vigil.example");
  await look(page, input.mrn);
  await tab(page, "Readings").click();
  await settled(page);
  const table = page.getByRole("region", { name: /^Readings/ }).first();
  await table.waitFor();
  const told = async (zone) => new Intl.DateTimeFormat("en-US", { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", timeZone: zone }).format(new Date(input.measured));
  assert.ok((await table.innerText()).match(moments).includes(await told("America/New_York")), `${await told("America/New_York")} is not in ${await table.innerText()}`);
  await named(page);
  for (const name of await page.getByRole("navigation", { name: "About this patient" }).getByRole("button").allInnerTexts()) {
    await tab(page, name.replace(/\s*\d+(\s+open)?\s*$/, "").trim()).click();
    await settled(page);
    await named(page);
  }
  for (const name of ["Alerts", "Escalations", "EMR", "Inbox"]) {
    await section(page, name).click();
    await settled(page);
    await named(page);
  }
  const choose = async (zone, words) => {
    await section(page, "Account").click();
    await page.getByRole("combobox", { name: "Time zone" }).waitFor();
    const taken = page.getByRole("button", { name: /^Remove America/ });
    if (await taken.count() > 0) {
      await taken.click();
    }
    if (zone) {
      await page.getByRole("combobox", { name: "Time zone" }).fill(words);
      await page.getByRole("option", { name: new RegExp(zone) }).click();
    }
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await until(page, async (want) => ((await consoleModule("session.js")).me.peek()?.time_zone ?? "") === want, zone.replace(" ", "_"));
  };
  await choose("America/Los Angeles", "los ang");
  await section(page, "EMR").click();
  await settled(page);
  await shows(page.locator(".zone"), "All times PT (yours)");
  await choose("", "");
  await section(page, "EMR").click();
  await settled(page);
  await shows(page.locator(".zone"), /^All times ET$/);
  return {};
}

// named fails for a table with times that does not name its zone.
async function named(page) {
  const silent = await page.evaluate((pattern) => [...document.querySelectorAll("main table")].filter((table) => new RegExp(pattern).test(table.innerText)
    && !table.closest("section, .card, .sheet, main").querySelector(".zone")).map((table) => table.caption?.innerText ?? table.innerText.slice(0, 80)), moments.source);
  assert.deepEqual(silent, [], `tables that name no zone at ${page.url()}`);
}

// From anywhere, also while typing: find a patient by name or MRN, a page, or an action; then the focus returns.
async function find(page) {
  await signIn(page, "nurse@vigil.example");
  await section(page, "Patients").click();
  const search = page.getByRole("searchbox", { name: "Name or MRN" });
  await search.focus();
  await page.keyboard.press("Control+k");
  await finder(page).waitFor();
  await accessible(page, "find");
  await page.keyboard.press("Escape");
  await finder(page).waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement.name), "search", "the focus is lost");
  const field = finder(page).getByRole("combobox");
  const to = async (words, what) => {
    await page.keyboard.press("Control+k");
    await field.fill(words);
    await finder(page).getByRole("option", { name: what }).first().waitFor();
    while (!what.test(await finder(page).locator("[aria-selected=true]").innerText())) {
      await page.keyboard.press("ArrowDown");
    }
    await page.keyboard.press("Enter");
    await finder(page).waitFor({ state: "detached" });
  };
  await to(input.mrn, new RegExp(input.mrn));
  await heading(page, new RegExp(input.last)).waitFor();
  await to("escal", /^Escalations/);
  await heading(page, "Escalations").waitFor();
  await to(`${input.first} ${input.last}`, new RegExp(input.mrn));
  await heading(page, new RegExp(input.last)).waitFor();
  assert.ok(!new RegExp(`${input.last}|${input.mrn}|${input.patient}`, "i").test(`${page.url()} ${await page.title()}`), "address or title name the patient");
  await page.keyboard.press("Control+k");
  await field.fill("priya");
  await finder(page).getByRole("option", { name: /Priya Raman/ }).waitFor();
  await field.fill("zzzzqq");
  await shows(finder(page), "Nothing matches.");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k"); // faster than the service answers, and still the intended patient
  await field.fill("pati");
  await finder(page).getByRole("option", { name: /^Patients/ }).waitFor();
  await field.fill(input.mrn);
  await page.keyboard.press("Enter");
  await heading(page, new RegExp(input.last)).waitFor();
  await finder(page).waitFor({ state: "detached" });
  await to("sign out", /^Sign out/);
  await page.getByText("You have signed out.").waitFor();
  return {};
}

// The timer is offered in a chart and on a call, is visible on every page, and can be stopped with a note from any.
async function timer(page) {
  await signIn(page, "nurse@vigil.example");
  await look(page, input.mrn);
  const bar = page.getByRole("banner");
  await bar.getByRole("button", { name: "Start timer" }).waitFor();
  await section(page, "Inbox").click();
  await bar.getByRole("button", { name: "Start timer" }).waitFor({ state: "detached" });
  await look(page, input.mrn);
  await page.evaluate(() => { // a phone number on the page is clicked; the test cannot dial
    const number = Object.assign(document.createElement("a"), { href: "tel:+15550100" });
    number.addEventListener("click", (event) => event.preventDefault());
    document.querySelector("main").append(number);
    number.click();
    number.remove();
  });
  await bar.getByRole("button", { name: "Time this call" }).click();
  const clock = bar.getByRole("group", { name: "Your timer" });
  await shows(clock, input.last);
  for (const name of ["Triage", "Patients", "Inbox"]) {
    await section(page, name).click();
    await shows(clock.getByRole("timer"), /\d\d:\d\d/);
  }
  await accessible(page, "the running timer");
  await clock.getByRole("button", { name: /^Stop/ }).click();
  await page.getByRole("dialog").getByLabel("Notes").fill("Takes the pills again.");
  await page.keyboard.press("Control+Enter");
  await clock.waitFor({ state: "detached" });
  return {};
}

// The title counts the open critical alerts as they arrive, without names.
async function title(page) {
  await signIn(page, "nurse@vigil.example");
  await shows(page.locator(".stream"), "Live");
  const count = async () => Number((await page.title()).match(/^\((\d+)\) /)?.[1] ?? 0);
  await until(page, async (open) => (await consoleModule("criticals.js")).criticals.peek() === open, input.criticals);
  assert.equal(await count(), input.criticals);
  await sendReading(input.device, input.patient, { systolic: 214, diastolic: 127, pulse: 98 });
  await page.waitForFunction((open) => document.title.startsWith(`(${open}) `), input.criticals + 1);
  assert.equal(await page.title(), `(${input.criticals + 1}) Triage – Vigil`);
  await section(page, "Inbox").click();
  await page.waitForFunction((open) => document.title === `(${open}) Inbox – Vigil`, input.criticals + 1);
  return {};
}

// Actions that the service does not allow have no control, in any role.
async function rights(page) {
  await page.route("**/api/v1/auth/me/", async (route) => {
    const answer = await route.fetch();
    const body = await answer.json();
    for (const action of ["create_escalations", "read_alerts", "read_billing"]) {
      delete body.permissions[action];
    }
    await route.fulfill({ response: answer, json: body });
  });
  await signIn(page, "provider@vigil.example");
  assert.deepEqual(await page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name: /Alerts|Billing/ }).count(), 0);
  await look(page, input.mrn);
  assert.equal(await page.getByRole("button", { name: /^Escalate/ }).count(), 0, "what is refused is offered");
  return {};
}

// Weight and temperature, limits and texts included, are shown and entered in the practice's units, lb and °F, until the user has chosen
// others, and stored in the service's.
async function units(page) {
  await signIn(page, "nurse@vigil.example");
  await until(page, async () => (await consoleModule("session.js")).display.peek().weight_unit === "lb");
  await page.locator(".triage > .row").first().waitFor();
  assert.equal(await page.locator(".triage > .row", { hasText: / kg|°C/ }).count(), 0);
  await look(page, input.mrn);
  await tab(page, "Thresholds").click();
  await shows(page.locator("main"), "Warning at a change of");
  assert.ok(!/ kg\b|°C/.test(await page.locator("table.limits").innerText()), "limits in kg or °C");
  const choose = async (weight, temperature) => {
    await section(page, "Account").click();
    await page.getByLabel("Weight").selectOption(weight);
    await page.getByLabel("Temperature").selectOption(temperature);
    await page.getByRole("button", { name: "Save display settings" }).click();
    await until(page, async (unit) => (await consoleModule("session.js")).display.peek().weight_unit === unit, weight);
  };
  await choose("lb", "F");
  await look(page, input.mrn);
  await tab(page, "Readings").click();
  const enter = async (kind, label, value, read) => {
    await page.getByRole("button", { name: "Enter a reading" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Kind").selectOption(kind);
    await dialog.getByLabel(label).fill(value);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await shows(page.locator("tbody tr"), read);
  };
  await enter("weight", "Weight (lb)", "154.3", "154.3 lb");
  await enter("body_temperature", "Temperature (°F)", "98.6", "98.6 °F");
  for (const title of [/eight, lb/, /emperature, °F/]) {
    await shows(page.locator("figcaption"), title);
  }
  await tab(page, "At a glance").click();
  for (const value of ["154.3 lb", "98.6 °F"]) {
    await shows(page.locator(".tiles > li"), value);
  }
  await choose("kg", "C");
  await look(page, input.mrn);
  await tab(page, "Readings").click();
  await shows(page.locator("tbody tr"), "69.99 kg");
  await shows(page.locator("tbody tr"), "37 °C");
  return {};
}

// On a phone and at 200 %, in dark mode: the header with a running timer and the session warning fit.
async function narrow(page) {
  await page.context().clock.install();
  await signIn(page, "admin@vigil.example");
  await look(page, input.mrn);
  await page.getByRole("banner").getByRole("button", { name: "Start timer" }).click();
  const clock = page.getByRole("banner").getByRole("group", { name: "Your timer" });
  await clock.waitFor();
  await section(page, "Account").click();
  for (const [width, height] of [[390, 800], [700, 450], [1300, 900]]) {
    await page.setViewportSize({ width, height });
    const fits = async (what) => {
      const { wide, high } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, high: document.querySelector(".top").offsetHeight / 16 }));
      assert.ok(wide <= width, `${what} is ${wide} wide in a window of ${width}`);
      assert.ok(high < (width < 640 ? 4.25 : 7.25), `the bar is ${high} rem high in a window of ${width}, with ${what}`);
      await accessible(page, `${what} in a window of ${width}`);
    };
    await settled(page);
    await page.context().clock.fastForward("13:10");
    await page.getByRole("alertdialog").waitFor();
    await fits("the warning");
    await page.getByRole("button", { name: "Stay signed in" }).click();
    await page.keyboard.press("Control+k");
    await finder(page).getByRole("combobox").fill("a");
    await finder(page).getByRole("combobox").fill(input.last);
    await finder(page).getByRole("option", { name: input.mrn }).waitFor();
    await fits("find");
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    await fits("the keys");
    await page.keyboard.press("Escape");
    await page.getByRole("combobox", { name: "Time zone" }).click();
    await page.getByRole("option", { name: /Chicago/ }).waitFor();
    await fits("the account");
    await page.keyboard.press("Escape");
  }
  await clock.getByRole("button", { name: /^Stop/ }).click();
  await page.getByRole("dialog").getByLabel("Notes").fill("On the phone, in the dark.");
  await page.getByRole("dialog").getByRole("button", { name: "Stop and log" }).click();
  await clock.waitFor({ state: "detached" });
  return {};
}

await run((page) => parts[input.part](page), { ...input.options, tolerate: input.part === "errors" ? /Failed to load resource/ : undefined });
