// Every view of the router with its tabs and dialogs, for users with low vision or without a pointer.
import assert from "node:assert/strict";
import { base, input, run } from "./browser.mjs";
import { settled, signIn, signOff } from "./console.mjs";
import { look, prepare, sizes } from "./accessibility_checks.mjs";

// The subject of each view that has one; a view with several forms has several subjects.
const abouts = {
  patient: [{ id: input.patient }, {}],
  entry: [{ id: input.entry }, {}],
  enrolment: [{}, { fresh: true }, { id: input.unfinished }],
};

// Choices within a view, selected one after the other.
const rows = ["About this patient", "Reports", "Enrollment steps"];
const choices = ["[role=tab]", ...rows.map((name) => `nav[aria-label="${name}"] button`)].join();

// The buttons that open a dialog or a form begin with these words. None of them acts immediately.
const opening = ["Add", "Edit", "Snooze", "Log", "Enter", "Escalate", "Hand over", "New", "Assign", "Replace",
  "Unassign", "Record", "Revoke", "Run billing", "Create(?! batch)", "Export reviewed", "Import", "Archive", "Delete", "Entered in error", "Set up",
  "Confirm", "Discard", "Give", "Resolve", "Acknowledge with", "Note", "Invite", "Readings of", "About the escalation",
  "Sign off"];
const opens = new RegExp(`^(${opening.join("|")})\\b(?!.* as reviewed)`);

// Dialogs opened by a key or a choice in their view; Escape closes them.
const more = (page) => page.locator(".more-acts summary").click();
const details = async (page) => {
  for (const name of [/^Readings of/, /^Details of/]) { // they stay open from door to door
    const button = page.getByRole("button", { name }).first();
    await button.waitFor();
    await button.getAttribute("aria-expanded") === "false" && await button.click();
  }
  await page.locator(".reading.whole .acts").first().waitFor();
};
const doors = {
  triage: {
    "the palette": (page) => page.keyboard.press("Control+k"),
    "the keys": (page) => page.keyboard.press("?"),
    "a patient at the side": (page) => page.locator(".triage > .row").first().click(),
    snooze: (page) => page.keyboard.press("s"),
  },
  alerts: {
    "one chosen": (page) => page.getByRole("checkbox", { name: /^Select (?!all)/ }).first().check(),
    "the details of a reading": (page) => details(page),
    ...Object.fromEntries(["Acknowledge with outcome", "Resolve", "Note", "Escalate"].map((act) => [act, async (page) => {
      await details(page);
      await page.locator(".reading.whole").getByRole("button", { name: new RegExp(`^${act}`) }).first().click();
    }])),
  },
  patient: {
    acknowledge: (page) => page.keyboard.press("a"),
    note: (page) => page.keyboard.press("n"),
    escalate: (page) => page.keyboard.press("e"),
    more,
    change: async (page) => { await more(page); await page.getByRole("button", { name: "Edit", exact: true }).first().click(); },
  },
  billing: { "one looked at": (page) => page.getByRole("button", { name: "Review one by one" }).click() },
};

const wrong = [];
const dialogs = new Set();
let states = 0;

await run(async (page) => {
  await prepare(page);
  await page.setViewportSize({ width: sizes[0][0], height: sizes[0][1] });
  await page.goto(`${base}/`);
  await page.getByLabel("Email").waitFor();
  await see(page, "sign-in", "body");
  await signIn(page, "admin@vigil.example");
  await settled(page);
  await see(page, "the bar", ".top");
  const views = await page.evaluate(() => consoleModule("views.js").then(({ load }) => Object.keys(load)));
  for (const view of [...views.filter((one) => one !== "my-health"), "nowhere"]) {
    for (const about of abouts[view] ?? [{}]) {
      await through(page, view, about);
    }
    await throughDoors(page, view, abouts[view]?.[0] ?? {});
  }
  await signOff(page);
  await signIn(page, "patient@vigil.example");
  await through(page, "my-health", {});
  assert.deepEqual(wrong, [], "somebody is shut out");
  for (const wanted of input.dialogs) {
    assert.ok([...dialogs].some((name) => name.startsWith(wanted)), `no dialog "${wanted}" was seen among ${[...dialogs].join(", ")}`);
  }
  return { views: views.length, dialogs: dialogs.size, states };
});

async function see(page, what, within = "#main") {
  states++;
  assert.equal(await page.locator(".door").count() > 0, what === "sign-in", `${what}: the session is over`);
  wrong.push(...await look(page, what, within, input.all));
}

async function open(page, view, about, query = {}) {
  await page.evaluate(([v, a, q]) => consoleModule("router.js").then(({ go }) => go(v, a, q)), [view, about, query]);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))); // until the previous view is removed
  await settled(page);
}

// loaded waits until the opened content is shown.
async function loaded(page) {
  await page.waitForTimeout(150);
  await page.waitForFunction(() => !document.querySelector(".state.waiting"));
}

// through checks a view, each of its tabs, and the dialogs that it can open.
async function through(page, view, about) {
  const said = new Set();
  await open(page, view, about);
  const name = `${view} ${Object.keys(about)}`.trim();
  const count = await page.locator(choices).count();
  for (let i = 0; i < Math.max(count, 1); i++) {
    let what = name;
    if (count > 0) {
      const tab = page.locator(choices).nth(i);
      if (await tab.isDisabled()) {
        continue;
      }
      what = `${name}, ${await tab.innerText()}`.replace(/\s+/g, " ");
      await tab.click();
      await settled(page);
    }
    await see(page, what);
    await throughDialogs(page, what, said);
  }
}

async function throughDoors(page, view, about) {
  for (const [name, act] of Object.entries(doors[view] ?? {})) {
    await open(page, view, about);
    await act(page);
    await loaded(page);
    await note(page);
    await see(page, `${view}, ${name}`, await page.locator("aside.drawer").count() > 0 ? "aside.drawer" : "#main");
    await shut(page);
  }
}

// throughDialogs opens one dialog for each kind of button and checks it. Links to other views are not followed.
async function throughDialogs(page, what, said) {
  await page.mouse.move(5, 5); // content under the pointer disappears when another row moves there
  const button = (name) => page.locator("#main").getByRole("button", { name }).filter({ visible: true });
  const names = await button(opens).evaluateAll((nodes) => nodes
    .filter((node) => !node.disabled && !(node.form && node.type === "submit") && !node.hasAttribute("aria-pressed"))
    .map((node) => (node.getAttribute("aria-label") ?? node.textContent).replace(/\s+/g, " ").trim()));
  const here = () => page.evaluate(() => [location.hash.split("?")[0], history.state?.about]);
  const before = await here();
  const query = await page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.split("?")[1] ?? "")));
  for (const name of names) {
    const kind = name.split(/[:,]| of | for | [A-Z]+-/)[0];
    if (said.has(kind) || await button(name).count() === 0) { // it belonged to replaced content
      continue;
    }
    said.add(kind);
    await button(name).first().click();
    await loaded(page);
    if (JSON.stringify(await here()) !== JSON.stringify(before)) {
      await open(page, before[0].slice(2), before[1], query);
      continue;
    }
    await note(page);
    await see(page, `${what}, ${name}`);
    if (await page.locator("dialog[open]").count() > 0) {
      await shut(page);
    }
  }
}

// note records which dialogs were checked.
async function note(page) {
  const titles = page.locator("dialog[open]").evaluateAll((nodes) =>
    nodes.map((node) => node.getAttribute("aria-label") ?? node.querySelector("h2").textContent));
  for (const title of await titles) {
    dialogs.add(title);
  }
}

// shut closes the open dialog with Escape, with the focus on a button, because an open list would take the key.
async function shut(page) {
  const dialog = page.locator("dialog[open]");
  const within = await dialog.count() > 0 ? dialog : page.locator("aside.drawer, #main"); // elements around a dialog are not focusable
  const button = within.locator("button").first();
  await button.count() > 0 && await button.focus(); // the search dialog has none
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
}
