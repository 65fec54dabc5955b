// A session across tabs, a reload and a pause: shared without a token in any storage, with a warning before it ends, and
// with unsaved notes kept for their author. INPUT selects the part; each starts signed out.
import assert from "node:assert/strict";
import { base, input, run, shows, until } from "./browser.mjs";
import { accessible, heading, section, settled, signIn, signOff } from "./console.mjs";

const parts = { tabs, drafts, absence, names };

const menu = (page) => page.getByRole("navigation", { name: "Sections" });
const door = (page) => page.getByRole("button", { name: "Sign in", exact: true });

// fresh opens another tab of the same browser.
async function fresh(page) {
  const tab = await page.context().newPage();
  await tab.goto(`${base}/`);
  return tab;
}

// kept returns everything that the browser stores for the page, as an attacker with the disk would find it.
const kept = (page) => page.evaluate(async () => {
  const databases = await indexedDB.databases();
  const cached = await caches.keys();
  return JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, databases.map(({ name }) => name), cached, location.href, history.state, document.title]);
});

const renew = (page) => page.evaluate(async () => {
  const { renew: swap } = await consoleModule("session.js");
  const fresh = swap();
  window.asked = true;
  return fresh;
});

// gate holds the token refreshes until it is opened, so that all tabs have sent one before the first is answered.
async function gate(context) {
  let open;
  const opened = new Promise((done) => { open = done; });
  await context.route("**/auth/token/refresh/", async (route) => { await opened; await route.continue(); });
  return open;
}

const token = (page) => page.evaluate(async () => (await consoleModule("session.js")).tokensHeld()?.refresh ?? null);
const works = async (page) => { await section(page, "Patients").click(); await heading(page, "Patients").waitFor(); await settled(page); };

async function tabs(page) {
  const swaps = [];
  page.context().on("request", (request) => request.url().endsWith("/auth/token/refresh/") && swaps.push(request.url()));
  await signIn(page, "nurse@vigil.example");
  const second = await fresh(page);
  await menu(second).waitFor();
  const third = await fresh(page);
  await menu(third).waitFor();
  const stranger = await page.context().browser().newContext(); // another browser does not share the session
  const elsewhere = await stranger.newPage();
  await elsewhere.goto(`${base}/`);
  await door(elsewhere).waitFor();
  await stranger.close();

  const secrets = [await token(page)];
  const open = await gate(page.context());
  const renewed = Promise.all([renew(page), renew(second), renew(third)]);
  await Promise.all([page, second, third].map((tab) => tab.waitForFunction(() => window.asked)));
  open();
  assert.deepEqual(await renewed, [true, true, true]);
  assert.equal(swaps.length, 1, "three tabs swap the token more than once");
  await page.context().unroute("**/auth/token/refresh/");
  secrets.push(await token(page));
  await until(third, async (now) => (await consoleModule("session.js")).tokensHeld()?.refresh === now, secrets[1]);
  await works(second);
  await page.close(); // the tab that refreshed for all
  assert.equal(await renew(second), true);
  assert.equal(swaps.length, 2);
  secrets.push(await token(second));
  await works(third);

  await section(second, "Inbox").click();
  await second.reload();
  await heading(second, "Inbox").waitFor();
  await works(second);
  await Promise.all([second.reload(), third.reload()]);
  await Promise.all([works(second), works(third)]);
  for (const tab of [second, third]) {
    const found = await kept(tab);
    for (const secret of [...secrets, await token(tab)]) {
      assert.ok(secret && !found.includes(secret), `a token is stored: ${found}`);
    }
    assert.ok(!/eyJ|refresh|access/.test(found), `something like a token is stored: ${found}`);
  }
  const copied = await second.context().newPage(); // opening the URL is not a reload: the tab requests the session from the others
  await copied.goto(second.url());
  await menu(copied).waitFor();
  await signOff(second);
  await Promise.all([door(third).waitFor(), door(copied).waitFor()]);
  await third.reload();
  await door(third).waitFor();
  assert.equal(await token(third), null);
  return {};
}

const words = "Swollen ankles, will call the daughter";

// begin types half a note in the dialog that stops the timer.
async function write(page) {
  await page.getByRole("banner").getByRole("button", { name: /^Stop/ }).click();
  const note = page.getByRole("dialog").getByLabel("Notes");
  await note.fill(words);
  await page.waitForFunction(() => Object.keys(sessionStorage).some((name) => name.startsWith("draft.")));
}

// found returns the dialog's content after it is reopened.
async function found(page) {
  await page.getByRole("banner").getByRole("button", { name: /^Stop/ }).click();
  const text = await page.getByRole("dialog").getByLabel("Notes").inputValue();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  return text;
}

async function startTimer(page) {
  await section(page, "Patients").click();
  await page.locator("tbody button.link").first().click();
  await page.getByRole("navigation", { name: "About this patient" }).waitFor();
  await page.getByRole("banner").getByRole("button", { name: "Start timer" }).click();
  await page.getByRole("group", { name: "Your timer" }).waitFor();
}

async function enter(page, email) {
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(input.password);
  await door(page).click();
  await menu(page).waitFor();
}

async function drafts(page) {
  await signIn(page, "nurse@vigil.example");
  await startTimer(page);
  await write(page);
  const stored = await kept(page);
  assert.ok(!stored.includes("Swollen") && !/time\./.test(stored), `the note can be read on the disk: ${stored}`);
  await page.reload();
  await page.getByRole("group", { name: "Your timer" }).waitFor();
  assert.equal(await found(page), words, "a reload loses the note");
  const other = await fresh(page);
  await other.getByRole("group", { name: "Your timer" }).waitFor();
  assert.equal(await found(other), "", "a draft is sealed to its tab");
  await other.close();

  const opened = await page.evaluate(async () => { // the user leaves while the key is generated
    const [api, { closeDrafts, draftCount, openDrafts }] = await Promise.all([consoleModule("api.js"), consoleModule("drafts.js")]);
    const { draft_key: secret } = await api.call("GET", "auth/me/");
    closeDrafts();
    const open = openDrafts(secret);
    closeDrafts();
    await open;
    return draftCount.peek();
  });
  assert.equal(opened, 0, "drafts are opened for somebody who has gone");
  await page.evaluate(async () => (await consoleModule("session.js")).end("The session has ended.")); // as when the service refuses it
  await enter(page, "provider@vigil.example");
  assert.equal(await page.evaluate(async () => (await consoleModule("drafts.js")).draftCount.peek()), 0, "a draft is shown to somebody else");
  await signOff(page);
  await enter(page, "nurse@vigil.example");
  await page.getByRole("group", { name: "Your timer" }).waitFor();
  assert.equal(await found(page), words, "an ended session loses the note");
  await page.getByRole("banner").getByRole("button", { name: /^Stop/ }).click();
  await shows(page.getByRole("dialog"), "Draft restored.");
  await page.getByRole("dialog").getByRole("button", { name: "Start over" }).click();
  assert.equal(await page.getByRole("dialog").getByLabel("Notes").inputValue(), "");
  await page.getByRole("dialog").getByLabel("Notes").fill(words);
  await page.getByRole("dialog").getByRole("button", { name: "Stop and log" }).click();
  await page.getByRole("group", { name: "Your timer" }).waitFor({ state: "detached" });
  await page.waitForFunction(() => Object.keys(sessionStorage).length === 0);
  await signOff(page);
  return { words };
}

// renewedAfterEnd ends the session while a renewal of its tokens is under way.
async function renewedAfterEnd(page) {
  const open = await gate(page.context());
  const asked = page.waitForRequest("**/auth/token/refresh/");
  const renewed = renew(page);
  await asked;
  await page.evaluate(async () => (await consoleModule("session.js")).end("over"));
  open();
  assert.equal(await renewed, false);
  await page.context().unroute("**/auth/token/refresh/");
}

async function absence(page) {
  await page.context().clock.install();
  await signIn(page, "nurse@vigil.example");
  await startTimer(page);
  const second = await fresh(page);
  await menu(second).waitFor();
  const warned = (tab) => tab.getByRole("alertdialog");
  const later = (time) => page.context().clock.fastForward(time);
  await write(page);
  await later("12:50");
  assert.equal(await warned(page).count(), 0, "it is warned too early");
  await later("00:20");
  await Promise.all([shows(warned(page), /You will be signed out in/), shows(warned(second), /You will be signed out in/)]);
  await shows(warned(page), "Your drafts are saved.");
  await accessible(second, "the countdown");
  await warned(second).getByRole("button", { name: "Stay signed in" }).click();
  await Promise.all([warned(second).waitFor({ state: "detached" }), warned(page).waitFor({ state: "detached" })]); // activity in one tab keeps all sessions alive
  await later("13:10");
  await warned(page).waitFor();
  await later("02:00");
  await Promise.all([shows(page.getByRole("status"), "You were signed out after 15 minutes"), door(second).waitFor()]);
  assert.equal(await token(page), null);
  const name = await page.evaluate(() => document.body.innerText);
  assert.ok(!name.includes(words), "the note is shown to whoever comes by");
  await enter(page, "nurse@vigil.example");
  await page.getByRole("navigation", { name: "About this patient" }).waitFor(); // the page before the reload
  assert.equal(await found(page), words, "an absence loses the note");
  await renewedAfterEnd(page);
  assert.equal(await token(page), null, "an answer that comes late brings the ended session back");
  return {};
}

// names is the search text: restored for the same user, and neither on the disk nor shown to the next user.
async function names(page) {
  const searched = "Featherstonehaugh";
  const field = page.getByLabel("Name or MRN");
  const place = () => page.evaluate(async () => (await consoleModule("router.js")).place.peek());
  await signIn(page, "nurse@vigil.example");
  await section(page, "Patients").click();
  await field.fill(searched);
  await page.waitForFunction(() => Object.keys(history.state.hidden ?? {}).length > 0); // the stored search text has its letters
  assert.ok(!(await kept(page)).includes(searched), `who was searched for can be read on the disk: ${await kept(page)}`);
  await section(page, "Inbox").click();
  await heading(page, "Inbox").waitFor();
  await page.goBack();
  await heading(page, "Patients").waitFor();
  assert.equal(await field.inputValue(), searched, "a step back loses the search");
  await page.reload();
  await heading(page, "Patients").waitFor();
  assert.equal(await field.inputValue(), searched, "a reload loses the search");
  await section(page, "Inbox").click();
  await heading(page, "Inbox").waitFor();
  await signOff(page);
  await enter(page, "provider@vigil.example");
  await page.goBack();
  await settled(page);
  assert.deepEqual(await place(), { view: "", about: {}, query: {}, hidden: {} }, "a step back leads to where somebody else was");
  assert.ok(!(await page.evaluate(() => document.body.innerHTML)).includes(searched));
  await signOff(page);
  return {};
}

await run((page) => parts[input.part](page), { tolerate: /Failed to load resource/ });
