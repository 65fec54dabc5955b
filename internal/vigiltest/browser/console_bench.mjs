// The console's speed with a large practice: the time to the first useful view, frame times while the list changes many
// times a second, and bytes transferred. INPUT has the account, patients with their devices, the webhook's secret, and the
// rate and duration of the changes.
import { setTimeout as pause } from "node:timers/promises";
import { base, input, run } from "./browser.mjs";
import { sendReading } from "./service.mjs";

const list = ".triage > .row";
const longFrame = 50; // milliseconds
let measured = 0; // number of readings so far, each a second after the last

await run(async (page) => {
  const bytes = await countBytes(page);
  await page.addInitScript(markFirst, list);
  for (let i = 0; i < input.patients.length; i++) { // the list needs content
    await send(i, 0);
  }
  const first = [await firstView(page)];
  const cold = bytes.sum;
  for (let round = 1; round < input.rounds; round++) {
    first.push(await firstView(page));
  }
  const frames = await watchFrames(page);
  const work = await watchWork(page);
  for (const link of await page.getByRole("navigation", { name: "Sections" }).getByRole("link").all()) {
    await link.click();
    await page.waitForFunction(() => document.querySelector("h1") !== null && document.querySelector(".state.waiting") === null);
  }
  return { first, cold, files: bytes.files, frames, work };
}, { reducedMotion: "no-preference" });

// firstView loads the console, signs in as a password manager does, and returns when each part was visible.
async function firstView(page) {
  await page.goto(`${base}/`);
  await page.getByLabel("Email").fill(input.email);
  await page.getByLabel("Password").fill(input.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(list).first().waitFor();
  return page.waitForFunction(() => window.marks.rows && window.marks).then((marks) => marks.jsonValue());
}

// markFirst records, in milliseconds from the request of the page, when the sign-in was painted, when it was sent, and when
// the list was painted.
function markFirst(rows) {
  const marks = window.marks = {};
  const painted = (name) => requestAnimationFrame(() => requestAnimationFrame(() => { marks[name] = performance.now(); }));
  addEventListener("submit", () => { marks.sent = performance.now(); }, { capture: true });
  const awaited = { door: "input[type=password]", rows };
  new MutationObserver((_, observer) => {
    for (const [name, selector] of Object.entries(awaited)) {
      if (document.querySelector(selector)) {
        delete awaited[name];
        painted(name);
      }
    }
    if (Object.keys(awaited).length === 0) {
      observer.disconnect();
    }
  }).observe(document, { childList: true, subtree: true });
}

// countBytes counts the bytes transferred, headers included; files counts the console's own files, each once.
async function countBytes(page) {
  const bytes = { sum: 0, files: 0 };
  const addresses = new Map();
  const network = await page.context().newCDPSession(page);
  await network.send("Network.enable");
  network.on("Network.responseReceived", ({ requestId, response }) => addresses.set(requestId, response.url));
  network.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    const address = addresses.get(requestId) ?? "";
    bytes.sum += encodedDataLength;
    if (!address.includes("/api/") && !bytes[address]) {
      bytes[address] = true;
      bytes.files += encodedDataLength;
    }
  });
  return bytes;
}

// watchFrames changes the list at a steady rate and records every frame.
async function watchFrames(page) {
  await page.locator(".stream", { hasText: "Live" }).waitFor();
  await page.mouse.move(2, 2); // rows under the pointer do not move, and their movement is measured
  await page.evaluate(() => {
    const watch = window.watch = { deltas: [], tasks: [], changes: 0, on: true };
    let last = performance.now();
    const frame = (now) => {
      watch.deltas.push(now - last);
      last = now;
      watch.on && requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    new PerformanceObserver((seen) => watch.tasks.push(...seen.getEntries().map((task) => task.duration))).observe({ type: "longtask" });
    new MutationObserver((seen) => { watch.changes += seen.length; }).observe(document.querySelector(".triage"), { childList: true, subtree: true, characterData: true });
  });
  const perSecond = await changeList(input.seconds);
  const watch = await page.evaluate(() => { window.watch.on = false; return window.watch; });
  const deltas = watch.deltas.slice(1).sort((a, b) => a - b);
  const at = (share) => deltas[Math.min(deltas.length - 1, Math.floor(deltas.length * share))];
  return {
    perSecond, mutations: watch.changes, frames: deltas.length, median: at(0.5), p99: at(0.99), longest: deltas.at(-1),
    long: deltas.filter((delta) => delta > longFrame).length, tasks: watch.tasks.length, longestTask: Math.max(0, ...watch.tasks),
  };
}

// changeList sends readings at the given rate, and returns the actual rate once the last is drawn.
async function changeList(seconds) {
  const sent = [];
  const began = performance.now();
  for (let n = 0; n < input.rate * seconds; n++) {
    await pause(Math.max(0, began + n * 1000 / input.rate - performance.now()));
    sent.push(send(n % input.patients.length, ++measured));
  }
  await Promise.all(sent);
  const took = (performance.now() - began) / 1000;
  await pause(500); // changes are batched, drawn and animated
  return sent.length / took;
}

// watchWork changes the list for a shorter time under the browser's tracing, which itself takes CPU time.
async function watchWork(page) {
  const browser = page.context().browser();
  await browser.startTracing(page, { categories: ["toplevel"] });
  const began = performance.now();
  await changeList(input.seconds / 4);
  const took = performance.now() - began;
  const { busy, longest } = workOf(JSON.parse(await browser.stopTracing()));
  return { busy: busy / took, longest };
}

// workOf returns the CPU time of the page's thread in milliseconds, independent of other load.
function workOf({ traceEvents }) {
  const main = traceEvents.find((event) => event.name === "thread_name" && event.args.name === "CrRendererMain" &&
    traceEvents.some((other) => other.pid === event.pid && other.name === "process_name" && other.args.name === "Renderer"));
  const tasks = traceEvents.filter((event) => event.ph === "X" && event.pid === main.pid && event.tid === main.tid && event.name.endsWith("::RunTask"));
  const times = tasks.map((task) => (task.tdur ?? 0) / 1000);
  return { busy: times.reduce((sum, time) => sum + time, 0), longest: Math.max(...times) };
}

// send sends a patient's reading, alternating between high and normal, each measured a second after the last.
function send(i, n) {
  const values = (n + i) % 3 === 1 ? { systolic: 124, diastolic: 79, pulse: 70 } : { systolic: 181 + n % 30, diastolic: 95, pulse: 88 };
  return sendReading(input.devices[i], input.patients[i], values, new Date(Date.now() - 3_600_000 + n * 1000));
}
