// Shared by the scripts: one Chromium page that fails the run at its first error. A script reads its input as JSON from
// INPUT and prints its result as JSON.
import assert from "node:assert/strict";
import path from "node:path";
import { chromium } from "playwright-core";

export const base = process.env.VIGIL_URL;
export const input = JSON.parse(process.env.INPUT);

const flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"];

const patience = 45_000; // milliseconds; generous for a busy machine
const limit = 8 * 60_000; // of a whole script: evaluate() and close() have no time limit of their own

// run opens the page, passes it to the script and prints the result. It takes a screenshot after a failure. tolerate is a
// pattern of errors that the script provokes. The critical alerts that are open at sign-in are put off, because their banner covers what a
// script clicks, unless the script is about them.
export async function run(script, { tolerate, banner = false, ...options } = {}) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: flags });
  const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(patience);
  await quiet(context, banner);
  const complaints = [];
  context.on("page", (opened) => watch(opened, tolerate, complaints));
  const page = await context.newPage();
  try {
    const answer = await Promise.race([script(page), late()]);
    assert.deepEqual(complaints, [], "the browser complains");
    console.log(JSON.stringify(answer));
  } catch (error) {
    const picture = path.join(process.env.PICTURES, "failure.png");
    const shown = context.pages().at(-1) ?? page;
    await shown.screenshot({ path: picture }).catch(() => {}); // the page may be closed too
    console.error(error, complaints, shown.url(), picture);
    process.exitCode = 1;
  } finally {
    await Promise.race([browser.close(), late(patience)]).catch((error) => console.error(error));
    process.stdout.write("", () => process.exit()); // a script that is late never ends by itself
  }
}

// quiet gives the pages consoleModule, which imports the page's own instance of a module of the console from its versioned address, and puts off
// the critical alerts unless the script is about their banner.
export async function quiet(context, banner = false) {
  await context.addInitScript(() => {
    window.consoleModule = (name) => import(document.querySelector("link[href$='/app/main.js']").href.replace("main.js", name));
  });
  banner || await context.addInitScript(putOffCriticals);
}

// putOffCriticals runs in the page.
function putOffCriticals() {
  addEventListener("DOMContentLoaded", async () => {
    if (!document.querySelector("link[href$='/app/main.js']")) {
      return; // not the console
    }
    const [criticals, { me }] = await Promise.all([consoleModule("criticals.js"), consoleModule("session.js")]);
    let last = criticals.criticalCauses.peek();
    const stop = criticals.criticalCauses.subscribe((causes) => {
      if (causes !== last && me.peek()) {
        criticals.putOff();
        queueMicrotask(() => stop());
      }
      last = causes;
    });
  });
}

// late fails after a time.
function late(after = limit) {
  return new Promise((_, fail) => { setTimeout(() => fail(new Error(`not done after ${after / 60_000} minutes`)), after).unref(); });
}

// watch collects exceptions, errors and warnings of a page, except Chromium's line about an answer that [refused] waits for.
function watch(page, tolerate, complaints) {
  page.on("pageerror", (error) => complaints.push(error.stack));
  page.on("console", (message) => {
    const known = page.refused === message.location().url && message.text().startsWith("Failed to load resource");
    if (["error", "warning"].includes(message.type()) && !known && !tolerate?.test(message.text())) {
      complaints.push(`${message.type()}: ${message.text()} (${message.location().url})`);
    }
  });
}

// refused performs an action that the service must answer with 400.
export async function refused(page, act) {
  const answer = page.waitForResponse((response) => {
    if (response.status() === 400) {
      page.refused = response.url();
    }
    return response.request().method() !== "GET";
  });
  await Promise.all([answer, act()]);
  assert.equal((await answer).status(), 400);
}

// until waits for an asynchronous condition in the page, such as a module: waitForFunction takes a promise for true.
export async function until(page, happens, arg) {
  for (const end = Date.now() + patience; !await page.evaluate(happens, arg);) {
    assert.ok(Date.now() < end, `in vain: ${happens}`);
    await page.waitForTimeout(50);
  }
}

// met waits until a condition of the script holds.
export async function met(page, holds, what) {
  for (const end = Date.now() + patience; !holds();) {
    assert.ok(Date.now() < end, `in vain: ${what}`);
    await page.waitForTimeout(20);
  }
}

// shows waits until a text is visible.
export async function shows(locator, text) {
  await locator.filter({ hasText: text }).first().waitFor();
}
