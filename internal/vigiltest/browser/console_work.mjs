// A day's work, each part in its role: an escalation is opened and resolved, a threshold is changed with its preview, a
// patient is imported from the EMR, billing runs and a claim is approved, the last of many payers gets one more rate, push
// is enabled and disabled.
import assert from "node:assert/strict";
import { createECDH, randomBytes } from "node:crypto";
import { base, input, run, shows } from "./browser.mjs";
import { heading, section, settled, signIn, signOff } from "./console.mjs";

const pushed = {
  endpoint: "https://push.vigil.example/send/one-browser", expirationTime: null,
  keys: { p256dh: createECDH("prime256v1").generateKeys("base64url"), auth: randomBytes(16).toString("base64url") },
};

await run(async (page) => {
  const did = {};
  for (const [role, works] of [["provider", [escalate, changeThreshold]], ["manager", [bringOver, arrangeOnCall]], ["billing", [approve, rateLastPayer]], ["nurse", [switchPushes]]]) {
    await signIn(page, `${role}@vigil.example`);
    for (const work of works) {
      Object.assign(did, await work(page));
    }
    await signOff(page);
  }
  return did;
});

async function escalate(page) {
  const first = page.getByRole("list", { name: "Patients by urgency" }).locator(":scope > .row").first();
  const name = await first.locator(".name").innerText();
  const reason = "Three calls, no answer: somebody should drive there.";
  await first.hover();
  await first.getByRole("button", { name: /^Escalate / }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Priority").selectOption("stat");
  await dialog.getByLabel("Reason").fill(reason);
  await dialog.getByRole("button", { name: "Escalate" }).click();
  await dialog.waitFor({ state: "detached" });

  await section(page, "Escalations").click();
  const row = page.locator("li.escalation", { hasText: reason });
  await shows(row, name);
  await row.getByRole("button", { name: /^About the escalation of / }).click();
  await row.getByRole("button", { name: /^Take: / }).click();
  await shows(row.locator(".with"), "You");
  await shows(row.locator(".with"), "in progress");
  await row.getByRole("button", { name: /^Resolve: / }).click();
  await dialog.getByLabel("Resolution").fill("The neighbour looked in: the cuff was on wrong.");
  await dialog.getByRole("button", { name: "Resolve" }).click();
  await dialog.waitFor({ state: "detached" });
  await row.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Closed", exact: true }).click();
  await shows(row.locator(".next"), "Resolved");
  await row.getByRole("button", { name: /^About the escalation of / }).click();
  await shows(row, "the cuff was on wrong");
  return { escalation: reason };
}

async function changeThreshold(page) {
  await section(page, "Patients").click();
  await page.locator("tbody button.link").first().click();
  await page.getByRole("navigation", { name: "About this patient" }).getByRole("button", { name: "Thresholds" }).click();
  await settled(page);
  const verdict = page.locator(".preview .verdict");
  const bound = page.getByLabel("Systolic: warning from, mmHg");
  const before = Number(await bound.inputValue());
  await bound.fill("95");
  const [, raised, would] = (await verdict.innerText()).match(/(\d+) → (\d+) alerts/).map(Number);
  assert.ok(would > raised, `a lower bound raises more alerts: ${raised} → ${would}`);
  await page.getByLabel("Reason for change").fill("Dizzy at lower pressures.");
  await page.getByRole("button", { name: "Save thresholds" }).click();
  await shows(page.locator(".toast"), "Thresholds saved.");
  await shows(page.getByRole("region", { name: "Threshold changes" }).locator("tbody tr"), `${before} → 95`);
  return { raised, would };
}

async function arrangeOnCall(page) {
  await section(page, "Escalations").click();
  await page.getByRole("button", { name: "On call" }).click();
  const now = page.getByRole("region", { name: "Now" });
  await shows(now, "No one is on call.");
  const dialog = page.getByRole("dialog");
  await page.locator(".rota .turn.gap").first().waitFor(); // the week as a picture
  await page.getByRole("button", { name: "Fill the gap" }).click();
  await shows(dialog, "Add an override");
  assert.notEqual(await dialog.getByLabel("To").inputValue(), "", "the end of the gap is not filled in");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Add an override" }).click();
  await dialog.getByLabel("Who").selectOption({ index: 1 });
  await dialog.getByLabel("To").fill(`${new Date().getFullYear() + 1}-01-01T07:00`);
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  await now.getByRole("button", { name: "Hand over" }).waitFor();
  const first = await now.locator("strong").innerText();
  await now.getByRole("button", { name: "Hand over" }).click();
  await dialog.getByLabel("Who").selectOption({ index: 1 });
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.waitForFunction((name) => document.querySelector("[aria-labelledby=now] strong")?.textContent !== name, first);
  assert.equal(await page.getByRole("region", { name: "Overrides" }).getByRole("listitem").count(), 2);
  await page.getByRole("button", { name: "Add a shift" }).click();
  await dialog.getByLabel("Starts on").selectOption("Sunday");
  await dialog.getByLabel("Who").selectOption({ index: 1 });
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  await shows(page.getByRole("region", { name: "Weekly schedule" }), "19:00–07:00");
  return { onCall: await now.locator("strong").innerText() };
}

async function bringOver(page) {
  await section(page, "EMR").click();
  await page.getByRole("tab", { name: "Import patients" }).click();
  await page.getByLabel("Show up to").fill("100");
  await page.getByRole("button", { name: "Search" }).click();
  const box = page.getByRole("checkbox", { name: /^Select / }).first();
  const row = page.locator("tbody tr").filter({ has: box });
  await box.check();
  const mrn = await row.locator("td").nth(2).innerText();
  const chosen = page.locator("tbody tr", { hasText: mrn });
  await page.getByRole("button", { name: "Import one patient" }).click();
  await shows(chosen.locator(".badge"), "Imported");
  await chosen.getByRole("button", { name: "Open" }).click();
  await shows(page.getByRole("main"), mrn);
  return { mrn };
}

async function approve(page) {
  await section(page, "Billing").click();
  await page.getByRole("button", { name: "Run billing" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Run", exact: true }).click();
  await shows(dialog.getByRole("status"), /\d+ created, \d+ skipped/);
  await dialog.getByRole("button", { name: "Done" }).click();
  await page.getByRole("tab", { name: "Entries" }).click();
  await page.getByLabel("State").selectOption("pending_review");
  await settled(page);
  await page.locator("tbody tr", { hasText: "To review", hasNot: page.getByText(/duplicate|attest|missing|unknown|overlaps|before/i) }).first().locator("button.link").click();
  const claim = (await heading(page, /^CLM/).innerText()).split(" ")[0];
  const step = async (name, confirm = name) => {
    await page.getByRole("button", { name, exact: true }).click();
    await dialog.getByRole("button", { name: confirm, exact: true }).click();
    await dialog.waitFor({ state: "detached" });
  };
  await step("Review");
  await shows(page.locator(".heading .badge"), "Reviewed");
  await step("Submit");
  await shows(page.locator(".heading .badge"), "Submitted");
  await page.getByRole("tab", { name: "History" }).click();
  await shows(page.locator(".steps li"), /ready to submit → Submitted/);
  return { claim };
}

// There are more payers, and rates of the last one, than one page of the API returns.
async function rateLastPayer(page) {
  await section(page, "Billing").click();
  await page.getByRole("tab", { name: "Payers and fees" }).click();
  await shows(page.getByRole("region", { name: "Payers", exact: true }), input.payer);
  const pages = page.getByRole("navigation", { name: "Pages of Rates" });
  const count = async () => Number((await pages.innerText()).match(/of (\d+)/)[1]);
  const before = await count();
  await pages.getByRole("button", { name: "Next" }).click();
  await shows(pages, "21–");
  await page.getByRole("button", { name: "Add a rate" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Payer").selectOption({ label: input.payer });
  await dialog.getByLabel("Rate in dollars").fill("51.5");
  await dialog.getByLabel("From").fill("2030-01-01");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await shows(pages, `of ${before + 1}`);
  return {};
}

// The push service is on the internet, so the browser's subscription is made up; everything else is real.
async function switchPushes(page) {
  await page.context().grantPermissions(["notifications"], { origin: base });
  await page.evaluate((made) => {
    let held = null;
    const subscription = { endpoint: made.endpoint, toJSON: () => made, unsubscribe: async () => { held = null; return true; } };
    PushManager.prototype.subscribe = async ({ applicationServerKey }) => { held = subscription; window.keyGiven = applicationServerKey; return held; };
    PushManager.prototype.getSubscription = async () => held;
  }, pushed);
  await section(page, "Inbox").click();
  await page.getByRole("tab", { name: "Push devices" }).click();
  const told = page.waitForRequest((request) => request.url().endsWith("/notifications/tokens/register/"));
  await page.getByRole("button", { name: "Turn on push" }).click();
  const body = (await told).postDataJSON();
  assert.deepEqual(body.token, pushed, "the service is told another subscription than the browser made");
  await shows(page.getByRole("status"), "Push is on in this browser");
  const worker = page.context().serviceWorkers()[0] ?? await page.context().waitForEvent("serviceworker");
  assert.equal(worker.url(), `${base}/push-worker.js`);
  const row = page.getByRole("region", { name: "Push devices" }).locator("tbody tr", { hasText: "This browser" });
  await shows(row, "Receives push");
  await row.getByRole("button", { name: "Remove this browser" }).click();
  await row.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Turn on push" }).waitFor();
  return { device: body.device_id, key: await page.evaluate(() => window.keyGiven) };
}
