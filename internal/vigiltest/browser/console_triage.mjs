// The triage list, one row per patient: who, severity, since when, why and owner at a glance, and worked by key with the
// patient's panel at the side.
import assert from "node:assert/strict";
import { met, run, shows } from "./browser.mjs";
import { accessible, heading, signIn } from "./console.mjs";
import { sendReading, signedIn } from "./service.mjs";

const nurse = "nurse@vigil.example";
const api = await signedIn(nurse);
const listed = async (more = "") => (await api("GET", `triage/patients/?concern=true&page_size=50${more}`)).results;
const rowOf = async (id) => (await listed(`&patient_id=${id}`))[0];
const alertsOf = async (id) => (await api("GET", `alerts/?page_size=100&patient_id=${id}`)).results;
const measured = (id, values) => sendReading(`TRIAGE-${id.slice(0, 8)}`, id, values);

const rows = (page) => page.locator(".triage > .row");
const row = (page, id) => page.locator(`.triage > .row[data-id="${id}"]`);
const drawer = (page) => page.locator("aside.drawer");
const order = (page) => rows(page).evaluateAll((items) => items.map((item) => item.dataset.id));
const focused = (page) => page.evaluate(() => document.activeElement?.dataset?.id ?? document.activeElement?.tagName);

await run(async (page) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await signIn(page, nurse);
  await page.locator(".stream", { hasText: /^Live$/ }).waitFor();
  await rows(page).first().waitFor();
  await oneLineEach(page);
  await groups(page);
  await panelFollows(page);
  await answered(page);
  await reviewedAndOn(page);
  await taken(page);
  await lettersStay(page);
  await orderRests(page);
  await waysBack(page);
  await keptOut(page);
  await forEverybody(page);
  return {};
});

// At least fifteen patients on a laptop, 40 pixels each, every one with value, age, sparkline, reason and owner; color is
// never the only cue.
async function oneLineEach(page) {
  const seen = await page.evaluate(() => {
    const top = document.querySelector(".triage-page .columns").getBoundingClientRect().bottom;
    const bottom = document.querySelector(".triage-page .keys").getBoundingClientRect().top;
    return [...document.querySelectorAll(".triage > .row")].filter((item) => {
      const box = item.getBoundingClientRect();
      return box.top >= top - 1 && box.bottom <= bottom + 1;
    }).length;
  });
  assert.ok(seen >= 15, `${seen} patients are in sight`);
  const heights = async () => [...new Set(await rows(page).evaluateAll((items) => items.map((item) => item.offsetHeight)))];
  assert.deepEqual(await heights(), [40]);
  await page.getByLabel("Row height").selectOption("comfortable");
  assert.deepEqual(await heights(), [52]);
  assert.match(page.url(), /rows=comfortable/);
  await page.getByLabel("Row height").selectOption("compact");

  const colours = await page.evaluate(() => {
    const probe = document.body.appendChild(document.createElement("i"));
    const of = (name) => { probe.style.color = `var(${name})`; return getComputedStyle(probe).color; };
    const found = { critical: of("--critical"), warning: of("--warning"), text: of("--text") };
    probe.remove();
    return found;
  });
  const words = { critical: /critical,/i, warning: /warning,/i, unsure: /not confirmed,/i, in_range: /in range,/i, no_bounds: /no limits,/i };
  let judged = 0;
  for (const { patient_id: id, concern } of await listed()) {
    if (await row(page, id).count() === 0) {
      continue;
    }
    const { label, value, age, why, band, sign, colour, state } = await row(page, id).evaluate((item) => ({
      label: item.getAttribute("aria-label"), value: item.querySelector(".value b").textContent, age: item.querySelector(".age").textContent,
      why: item.querySelector(".why").textContent.trim(), band: item.querySelector("svg.spark .band") !== null,
      sign: item.querySelector("svg.spark .sign")?.getAttribute("class") ?? "", colour: getComputedStyle(item.querySelector(".value b")).color,
      state: item.querySelector(".value").className,
    }));
    if (!state.split(" ").includes(concern.state)) {
      continue; // a reading arrived in between
    }
    judged++;
    assert.ok(value.length > 0 && why.length > 5, `${label} says too little`);
    assert.ok(concern.measured_at === null || /^(now|\d+ (min|h|days?))$/.test(age), `how long ago is ${age}`);
    if (concern.state in words) {
      assert.match(label, words[concern.state], "the word is heard");
    }
    if (["critical", "warning"].includes(concern.state)) {
      assert.equal(colour, colours[concern.state], `${label} in its colour`);
      assert.ok(concern.parameter === null || concern.change !== null || band, `${label} has no band`);
      assert.ok(sign === "" || sign.includes(concern.state), `${label} has the sign ${sign}`);
    } else {
      assert.ok(colour !== colours.critical && colour !== colours.warning, `${label} is coloured, and not out of bounds`);
    }
  }
  assert.ok(judged >= 15, `${judged} rows were looked at`);
}

// Unacknowledged patients are above those in progress, under headings with their number.
async function groups(page) {
  const all = ["Critical, unacknowledged", "Critical, in progress", "Warning", "Normal", "No data"];
  await page.mouse.move(2, 2); // the order is kept under a pointer
  await page.waitForFunction((names) => {
    const heads = [...document.querySelectorAll(".triage > .group b")].map((head) => head.innerText);
    return heads[0] === names[0] && heads.join() === names.filter((one) => heads.includes(one)).join(); // in order, each once
  }, all);
  const stats = await api("GET", "triage/patients/stats/");
  await shows(page.locator(".triage > .group .number").first(), new RegExp(`^${stats.critical_unanswered}$`));
}

// J and K move between patients, the panel follows, and the focus stays in the list.
async function panelFollows(page) {
  const ids = await order(page);
  const name = (i) => row(page, ids[i]).locator(".name").innerText();
  await page.keyboard.press("j");
  assert.equal(await focused(page), ids[0]);
  await page.keyboard.press("Enter");
  const who = drawer(page).getByRole("heading", { level: 2 });
  await shows(who, await name(0));
  await page.keyboard.press("j");
  await shows(who, await name(1));
  assert.equal(await focused(page), ids[1], "the focus stays in the list");
  await page.keyboard.press("k");
  await shows(who, await name(0));
  await drawer(page).locator(".causes[aria-busy=false]").waitFor();
  assert.match(await drawer(page).locator(".of").innerText(), /\d+ [MF] · born \w+ \d+, \d+ · MRN-\d+/);
  await drawer(page).locator(".past canvas, .past .hint").first().waitFor();
  await page.keyboard.press("Escape");
  await drawer(page).waitFor({ state: "detached" });
  assert.equal(await focused(page), ids[0], "closed, the focus is where it was");
}

// A critical alert requires a note: A opens it, the note is kept while the user views other patients, and is stored with
// every alert.
async function answered(page) {
  const [first, second] = await order(page);
  const systolic = 205 + Math.floor(Math.random() * 20);
  await measured(first, { systolic, diastolic: 126, pulse: 91 });
  await row(page, first).locator(".value.critical b", { hasText: `${systolic}/126` }).waitFor();
  await row(page, first).focus();
  await page.keyboard.press("a");
  const note = drawer(page).getByRole("textbox", { name: /^Note for/ });
  await note.waitFor();
  await page.waitForFunction(() => document.activeElement?.tagName === "TEXTAREA");
  await page.keyboard.type("jark: took no medicine"); // letters that are shortcuts elsewhere
  assert.equal(await note.inputValue(), "jark: took no medicine");
  await page.keyboard.press("Escape");
  assert.equal(await focused(page), first, "Escape goes back to the list");
  await page.keyboard.press("j");
  await shows(drawer(page).getByRole("heading", { level: 2 }), await row(page, second).locator(".name").innerText());
  assert.equal(await note.inputValue(), "", "the note is not another patient's");
  await page.keyboard.press("k");
  await page.waitForFunction(() => document.querySelector("aside.drawer textarea")?.value.startsWith("jark"));
  const open = (await alertsOf(first)).filter((alert) => !alert.acknowledged).map(({ id }) => id);
  assert.ok(open.length > 0);
  await drawer(page).locator(".causes", { hasText: "unacknowledged" }).waitFor();
  await page.keyboard.press("n");
  await page.keyboard.press("Control+Enter");
  await shows(page.locator(".toast"), "acknowledged");
  const after = (await alertsOf(first)).filter(({ id }) => open.includes(id));
  assert.deepEqual(after.map((alert) => [alert.acknowledged_by, alert.notes]), open.map(() => [nurse, "jark: took no medicine"]));
  await row(page, first).locator(".who", { hasText: "You" }).or(row(page, first).locator(".who", { hasText: "Stat" })).waitFor();
  assert.equal(await note.inputValue(), "", "what was sent is no draft any more");

  // It can be undone for ten seconds, with the note.
  await page.locator(".toast", { hasText: "acknowledged" }).getByRole("button", { name: "Undo" }).click();
  await shows(page.locator(".toast"), "restored");
  const undone = (await alertsOf(first)).filter(({ id }) => open.includes(id));
  assert.ok(undone.every((alert) => !alert.acknowledged), "taken back");
  await page.waitForFunction(() => document.querySelector("aside.drawer textarea")?.value.startsWith("jark"));
  await drawer(page).locator(".causes", { hasText: "unacknowledged" }).waitFor();
  await page.keyboard.press("n");
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelector("aside.drawer textarea")?.value === "");
  assert.ok((await alertsOf(first)).filter(({ id }) => open.includes(id)).every((alert) => alert.acknowledged), "and answered again");
}

// R records the review and moves on, with the panel, however slow the answer is; a user who has moved on stays there.
async function reviewedAndOn(page) {
  const ids = await order(page);
  const labels = await rows(page).evaluateAll((items) => items.map((item) => item.getAttribute("aria-label")));
  const at = labels.findIndex((label) => !label.includes("Critical, unacknowledged"));
  await row(page, ids[at]).focus();
  await page.keyboard.press("r");
  await page.waitForFunction((id) => document.activeElement?.dataset?.id === id, ids[at + 1]);
  await shows(drawer(page).getByRole("heading", { level: 2 }), await row(page, ids[at + 1]).locator(".name").innerText());
  assert.equal((await rowOf(ids[at])).last_reviewed_by, nurse);
  const answers = new Map(); // by patient: the browser may send two requests in either order
  await page.route("**/review/", async (route) => {
    await new Promise((go) => { answers.set(route.request().url().split("/").at(-3), go); });
    await route.continue();
  });
  const busy = (id) => row(page, id).and(page.locator(".busy"));
  await page.keyboard.press("r");
  await busy(ids[at + 1]).waitFor();
  await page.keyboard.press("r"); // pressing twice counts once
  await page.keyboard.press("j");
  await page.keyboard.press("r"); // two pending requests: the end of one does not end the other
  await busy(ids[at + 2]).waitFor();
  await page.keyboard.press("j");
  await met(page, () => answers.size === 2, "both reviews were sent");
  answers.get(ids[at + 2])();
  await busy(ids[at + 2]).waitFor({ state: "detached" });
  assert.equal(await busy(ids[at + 1]).count(), 1, "the other is still under way");
  answers.get(ids[at + 1])();
  const told = page.locator(".toast", { hasText: "3 reviewed" }); // one message for all
  await told.waitFor();
  assert.equal(await told.count(), 1);
  assert.equal(await focused(page), ids[at + 3], "who has gone on is not thrown back");
  await page.unroute("**/review/");
}

// T takes the escalation, also one assigned to another user, and the row shows the new owner.
async function taken(page) {
  const held = (await listed("&escalated=true")).find(({ holder }) => holder?.state === "assigned" && holder.by !== nurse);
  assert.ok(held, "an escalation that somebody was told of");
  await row(page, held.patient_id).focus();
  await page.keyboard.press("t");
  await shows(page.locator(".toast"), "Escalation assigned to you.");
  await row(page, held.patient_id).locator(".who", { hasText: "You" }).waitFor();
  const { holder } = await rowOf(held.patient_id);
  assert.deepEqual([holder.state, holder.by], ["in_progress", nurse]);
}

// No key acts with Alt (é is Option+E on a Mac), with Ctrl, or while a dialog is open.
async function lettersStay(page) {
  let writes = 0;
  const count = (request) => { writes += Number(request.method() !== "GET"); };
  page.on("request", count);
  const name = await drawer(page).getByRole("heading", { level: 2 }).innerText();
  for (const key of ["Alt+a", "Alt+r", "Alt+j", "Alt+e", "Control+e", "Meta+e"]) {
    await page.keyboard.press(key);
  }
  assert.equal(await page.locator("dialog[open]").count(), 0);
  await page.keyboard.press("s");
  const snooze = page.getByRole("dialog");
  await snooze.waitFor();
  await snooze.getByRole("button").first().focus();
  await page.keyboard.press("r");
  await page.keyboard.press("j");
  assert.equal(await drawer(page).getByRole("heading", { level: 2 }).innerText(), name, "nothing moved behind the dialog");
  await page.keyboard.press("Escape");
  await snooze.waitFor({ state: "detached" });
  await page.keyboard.press("e");
  await page.getByRole("dialog").getByLabel("Reason").waitFor();
  await page.keyboard.press("Escape");
  assert.equal(writes, 0, "nothing was written");
  page.off("request", count);
}

// While a user works in the list no row moves; a new critical patient is shown in the banner, and answering it brings the order up to
// date.
async function orderRests(page) {
  await page.keyboard.press("Escape");
  await drawer(page).waitFor({ state: "detached" });
  await page.evaluate(() => document.activeElement?.blur());
  const calm = (await listed("&risk_level=normal")).at(-1);
  await rows(page).nth(2).hover();
  const before = await order(page);
  await measured(calm.patient_id, { systolic: 231, diastolic: 129, pulse: 90 });
  const banner = page.getByRole("region", { name: "Unanswered critical alert" });
  await shows(banner, calm.patient_name);
  assert.deepEqual(await order(page), before, "nothing moved under the pointer");
  await page.keyboard.press(".");
  await page.getByRole("dialog", { name: "Critical alert" }).getByRole("button", { name: "Cancel" }).click();
  await page.locator(`.triage > .row[data-id="${calm.patient_id}"] .value.critical`).waitFor();
  await banner.getByRole("button", { name: "Later" }).click();
  const place = (await order(page)).indexOf(calm.patient_id);
  assert.ok(place >= 0 && place < 12, `the new critical stands at ${place}`);
  await page.mouse.move(3, 3);
}

// Opening the chart and going back keeps filters, position and focus; the URL contains no names.
async function waysBack(page) {
  await page.getByRole("button", { name: /^Warning \d+$/ }).click();
  await page.waitForURL(/risk_level=warning/);
  await page.locator(".triage > .group").nth(0).filter({ hasText: "Warning" }).waitFor();
  const ids = await order(page);
  const third = ids[2];
  await row(page, third).focus();
  await page.keyboard.press("o");
  await page.getByRole("navigation", { name: "About this patient" }).waitFor();
  const { mrn, patient_name: name } = await rowOf(third);
  for (const part of [third, mrn, ...name.split(" ")]) {
    assert.ok(!page.url().includes(part) && !(await page.title()).includes(part), `the address or title has ${part}`);
  }
  await page.goBack();
  await row(page, third).waitFor();
  assert.match(page.url(), /risk_level=warning/);
  assert.equal(await page.getByRole("button", { name: /^Warning \d+$/ }).getAttribute("aria-pressed"), "true");
  await page.waitForFunction((id) => document.activeElement?.dataset?.id === id, third);
  await page.getByRole("searchbox", { name: "Name or MRN" }).fill("Zzyzx");
  await shows(page.locator(".state"), "No patients match");
  assert.ok(!page.url().includes("Zzyzx"), "a searched name is in the address");
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.waitForFunction(() => document.querySelector(".triage-page input[type=search]").value === "");
  await page.getByRole("button", { name: /^All \d+$/ }).click();
  await heading(page, "Triage").waitFor();
  await rows(page).first().waitFor();
}

// The browser's storage contains no patient data in the clear.
async function keptOut(page) {
  const [first] = await listed();
  await row(page, first.patient_id).click();
  await drawer(page).getByRole("textbox", { name: /^Note for/ }).fill("Zephyr has pain");
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.title, location.href]));
  for (const part of [first.mrn, first.patient_name, "Zephyr"]) {
    assert.ok(!stored.includes(part), `${part} is stored in the clear`);
  }
  await drawer(page).getByRole("textbox", { name: /^Note for/ }).fill("");
}

// Both color schemes, a phone, and 200 % text size: no axe finding, no overflow, and touch targets of sufficient size.
async function forEverybody(page) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const [what, width, height] of [["a laptop", 1440, 900], ["twice the type", 720, 450], ["a phone", 390, 844]]) {
      await page.setViewportSize({ width, height });
      await page.evaluate(() => scrollTo(0, 0)); // half-covered elements are not touch targets at this moment
      await accessible(page, `${what}, ${colorScheme}, with the panel`);
      await drawer(page).getByRole("button", { name: "Close the panel" }).click();
      await accessible(page, `${what}, ${colorScheme}`);
      const { wide, inner } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, inner: innerWidth }));
      assert.ok(wide <= inner, `${what}: ${wide} of ${inner} pixels`);
      await rows(page).first().click();
      await drawer(page).locator(".causes[aria-busy=false]").waitFor();
      if (width === 390) {
        const small = await drawer(page).locator(".do > *, .pair button").evaluateAll((items) => items.map((item) => item.getBoundingClientRect())
          .filter((box) => box.height < 44 || box.width < 44).length);
        assert.equal(small, 0, "a button is too small for a thumb");
        const boxes = await drawer(page).locator("header button").evaluateAll((items) => items.map((item) => item.getBoundingClientRect().toJSON()));
        assert.ok(boxes.every((box, i) => i === 0 || box.left >= boxes[i - 1].right - 1.5), "buttons of the panel lie over each other");
      }
    }
  }
}
