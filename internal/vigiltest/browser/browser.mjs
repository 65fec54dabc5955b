// What the scripts share: one page of a Chromium that fails the run with its first complaint. A script gets its wishes as JSON in INPUT
// and answers with JSON on standard output.
import assert from "node:assert/strict";
import path from "node:path";
import { chromium } from "playwright-core";

export const base = process.env.VIGIL_URL;
export const input = JSON.parse(process.env.INPUT);

const flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"];

const patience = 45_000; // milliseconds; nothing takes as long, but on a machine that does much else

// run opens the page, hands it to the script and prints what comes back. When it fails there is a picture of the page.
// tolerate is a pattern of complaints that the script provokes.
export async function run(script, { tolerate, ...options } = {}) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: flags });
  const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(patience);
  const complaints = [];
  context.on("page", (opened) => watch(opened, tolerate, complaints));
  const page = await context.newPage();
  try {
    const answer = await script(page);
    assert.deepEqual(complaints, [], "the browser complains");
    console.log(JSON.stringify(answer));
  } catch (error) {
    const picture = path.join(process.env.PICTURES, "failure.png");
    const shown = context.pages().at(-1) ?? page;
    await shown.screenshot({ path: picture }).catch(() => {}); // it may be gone as well
    console.error(error, complaints, shown.url(), picture);
    process.exitCode = 1;
  } finally {
    await browser.close();
  }
}

// watch collects exceptions, errors and warnings of a page, but for Chromium's own line about an answer that [refused] waits for.
function watch(page, tolerate, complaints) {
  page.on("pageerror", (error) => complaints.push(error.stack));
  page.on("console", (message) => {
    const known = page.refused === message.location().url && message.text().startsWith("Failed to load resource");
    if (["error", "warning"].includes(message.type()) && !known && !tolerate?.test(message.text())) {
      complaints.push(`${message.type()}: ${message.text()} (${message.location().url})`);
    }
  });
}

// refused does something that the service has to answer with 400.
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

// until waits for something to be true in the page that the page has to wait for itself, as for a module: waitForFunction takes a promise
// for true.
export async function until(page, happens, arg) {
  for (const end = Date.now() + patience; !await page.evaluate(happens, arg);) {
    assert.ok(Date.now() < end, `in vain: ${happens}`);
    await page.waitForTimeout(50);
  }
}

// shows waits until a text can be seen.
export async function shows(locator, text) {
  await locator.filter({ hasText: text }).first().waitFor();
}
