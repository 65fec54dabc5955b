// A patient's review by pointer and by key, counted: the breach comes first and is acknowledged with one note; the call is
// timed and noted; then the escalation, the review and the visit report. The browser's clock is in Tokyo, the patient is in
// Honolulu.
import assert from "node:assert/strict";
import path from "node:path";
import { input, run, shows } from "./browser.mjs";
import { section, settled, signIn } from "./console.mjs";

const counted = { clicks: 0, keys: 0 };

await run(async (page) => {
  const click = (target) => { counted.clicks++; return target.click(); };
  const press = (key) => { counted.keys++; return page.keyboard.press(key); };
  const dialog = page.getByRole("dialog");
  const toast = page.locator(".toast").last();
  const before = page.getByRole("region", { name: "Out of range" });

  const write = async (text) => { // the note field has the focus automatically
    await page.waitForFunction(() => document.activeElement?.getAttribute("name") === "notes");
    await page.keyboard.type(text);
  };
  await page.addInitScript(() => addEventListener("click", (event) => { // without a phone app the browser would prompt
    const link = event.target.closest?.('a[href^="tel:"]');
    if (link) {
      event.preventDefault();
      window.dialled = link.href;
    }
  }, true));
  await signIn(page, "nurse@vigil.test");
  await open(page);
  await looksRight(page, before);
  await prints(page);
  await linked(page);

  await test("letters belong to whoever types, to dialogs and to Alt", async () => {
    await page.keyboard.press("Alt+e");
    await page.keyboard.press("Control+e");
    assert.equal(await dialog.count(), 0, "a letter with Alt or Control acts");
  });
  counted.keys = counted.clicks = 0;

  await press("a");
  await shows(dialog.getByRole("heading"), /^Acknowledge 4 alerts/);
  await write("Headache since the morning.");
  assert.equal(await dialog.count(), 1, "letters of a note acted");
  await press("Control+Enter");
  await shows(toast, "Acknowledged 4 alerts");
  assert.equal(await toast.getByRole("button", { name: /Undo/ }).count(), 1, "what was acknowledged at once cannot be taken back");
  await shows(before, "No open alerts");
  await shows(page.getByRole("region", { name: "Last notes" }), "Headache since the morning.");
  await shows(page.getByRole("region", { name: "Open work" }), "in progress, yours");

  await press("c");
  await shows(page.getByRole("region", { name: "Contact" }), "Timer running");
  assert.equal(await page.evaluate(() => window.dialled), "tel:5185550120");
  await press("n");
  await shows(dialog.getByRole("heading"), "Stop the timer");
  await write("Took lisinopril late.");
  await press("Control+Enter");
  await shows(page.getByRole("region", { name: "Last notes" }), "Took lisinopril late.");

  await press("e");
  await dialog.getByLabel("Reason").fill("Rising since Friday.");
  await press("Control+Enter");
  await shows(toast, "Escalated");
  await press("r");
  await shows(toast, "Reviewed.");
  const download = page.waitForEvent("download");
  await press("p");
  const paper = await download;
  await paper.saveAs(path.join(input.papers, paper.suggestedFilename()));
  const round = { ...counted };

  await test("what is looked at stays in the address, and nobody is named there", async () => {
    await click(page.getByRole("button", { name: "90 days" }));
    await click(page.getByRole("button", { name: "Table", exact: true }));
    await settled(page);
    const table = page.getByRole("region", { name: /^Blood pressure of 90 days/ });
    await shows(table.locator("tbody tr").first(), input.clock);
    assert.match(page.url(), /days=90/);
    assert.match(page.url(), /as=table/);
    await click(page.getByRole("navigation", { name: "About this patient" }).getByRole("button", { name: "Readings" }));
    await settled(page);
    assert.match(page.url(), /tab=readings/);
    await section(page, "Patients").click();
    await page.getByRole("heading", { level: 1, name: "Patients" }).waitFor();
    await page.goBack();
    await page.getByRole("navigation", { name: "About this patient" }).locator("[aria-current]", { hasText: "Readings" }).waitFor();
    const told = await page.evaluate(() => [location.href, document.title, JSON.stringify({ ...localStorage, ...sessionStorage })].join(" "));
    assert.ok(!told.includes(input.name) && !/[0-9a-f]{8}-[0-9a-f]{4}/.test(told), `it is told whom somebody looked at: ${told}`);
  });
  return { ...round, paper: paper.suggestedFilename() };
}, { timezoneId: "Asia/Tokyo" });

async function test(what, act) {
  try {
    await act();
  } catch (error) {
    throw new Error(what, { cause: error });
  }
}

async function open(page) {
  await section(page, "Patients").click();
  await page.locator("tbody button.link", { hasText: input.name }).click();
  await page.getByRole("navigation", { name: "About this patient" }).waitFor();
  await settled(page);
}

// linked opens the chart in a second tab by a link that works once and leaves no id in the address or the history.
async function linked(page) {
  const name = await page.getByRole("heading", { level: 1 }).innerText();
  await page.getByLabel("More actions").click();
  const [second] = await Promise.all([page.context().waitForEvent("page"), page.getByRole("button", { name: "Open in new tab" }).click()]);
  await shows(second.getByRole("heading", { level: 1 }), name);
  assert.ok(!/code|[0-9a-f]{8}-/.test(second.url()), `the address is ${second.url()}`);
  await second.close();
  await page.evaluate(() => { navigator.clipboard.writeText = async (text) => { window.copied = text; }; });
  await page.getByLabel("More actions").click();
  await page.getByRole("button", { name: "Copy link for a colleague" }).click();
  await shows(page.locator(".toast"), "opens this chart once");
  const link = await page.evaluate(() => window.copied);
  const third = await page.context().newPage();
  await third.goto(link);
  await shows(third.getByRole("heading", { level: 1 }), name);
  await third.goto("about:blank");
  third.refused = new URL("/api/v1/chart-links/", link).href; // which the browser reports
  await third.goto(link);
  await shows(third.locator(".toast"), "was used, or has ended");
  await third.close();
}

// prints checks that paper has the counted days, which are told by color, and the names of open work, which are buttons.
async function prints(page) {
  await page.emulateMedia({ media: "print" });
  const day = await page.locator(".calendar td.counted").first().evaluate((cell) => getComputedStyle(cell).printColorAdjust);
  assert.equal(day, "exact", "the counted days are white on white");
  const names = page.getByRole("region", { name: "Open work" }).locator("li button.link");
  assert.ok(await names.count() > 0);
  assert.ok(await names.first().isVisible(), "open work has no names");
  assert.equal(await page.getByRole("button", { name: /^Escalate/ }).filter({ visible: true }).count(), 0, "buttons are printed");
  await page.emulateMedia({ media: "screen" });
  await section(page, "Triage").click();
  await page.evaluate(() => { window.print = () => { window.hasPrinted = true; }; });
  await page.getByRole("button", { name: "Print handover" }).click();
  assert.ok(await page.evaluate(() => window.hasPrinted));
  await page.emulateMedia({ media: "print" });
  await shows(page.locator(".print-only"), /^Handover, .+, by /);
  assert.ok(await page.locator(".triage > .row").first().isVisible());
  await page.emulateMedia({ media: "screen" });
  await page.goBack();
}

// looksRight compares the patient page with the service's data.
async function looksRight(page, before) {
  const said = await before.innerText();
  assert.match(said, /188\/114/, "the newest critical value stands first");
  assert.match(said, /×3/);
  const order = await page.evaluate(() => [...document.querySelectorAll(".breach, .pressure, .days")].map((one) => one.classList[0] === "card" ? one.classList[1] : one.classList[0]));
  assert.deepEqual(order, ["breach", "pressure", "days"], "what breached is not first");

  const chart = await page.getByRole("img", { name: /^Blood pressure of 30 days/ }).getAttribute("aria-label");
  assert.match(chart, new RegExp(`: ${input.summary.periods[1].blood_pressure.readings} readings, the last 188/114, .*${input.clock}; 3 with a critical value`));
  const means = page.getByRole("region", { name: /means of the last days/ }).locator("tbody tr");
  for (const [i, period] of input.summary.periods.entries()) {
    const row = await means.nth(i).innerText();
    for (const part of [period.blood_pressure, period.blood_pressure.morning, period.blood_pressure.evening]) {
      const mean = part.mean_systolic === null ? "–" : `${Math.floor(part.mean_systolic + 0.5)}/${Math.floor(part.mean_diastolic + 0.5)}`;
      assert.ok(row.includes(mean), `${period.days} days: ${mean} is not in ${row}`);
    }
    assert.ok(row.includes(`${period.blood_pressure.readings}, ${period.blood_pressure.days}`), `${row} counts otherwise`);
    assert.ok(row.includes(`${Math.floor(period.blood_pressure.in_range_percent + 0.5)} %`), `${row} has another share in range`);
  }
  const days = page.getByRole("region", { name: "Days with readings" });
  assert.equal(input.days.days.length, 14);
  assert.match(await days.innerText(), /14\s+days \(16 needed/);
  assert.match(await days.innerText(), /2 more by/);
  assert.equal(await days.locator("td.counted").count(), 14, "fourteen dots");
  assert.equal(await days.locator("td.today.counted").count(), 1, "today is the patient's");
  await shows(page.getByRole("region", { name: "Contact" }).getByRole("link"), "(518) 555-0120");
  await shows(page.getByRole("region", { name: "Open work" }), "not acknowledged");
  await shows(page.getByText("All times HT (the patient’s)").or(page.getByText("All times HST (the patient’s)")), "All times");
}
