// The layout of the list: visible rows, overlaps, positions, and the message when the connection is lost.
import assert from "node:assert/strict";
import { run } from "./browser.mjs";
import { section, settled, signIn } from "./console.mjs";
import { signedIn } from "./service.mjs";

const phone = { width: 390, height: 844 };
const box = (locator) => locator.first().boundingBox();
const row = ".triage > .row";

await run(async (page) => {
  await signIn(page, "nurse@vigil.example");
  await page.locator(row).first().waitFor();
  await page.locator(".stream.live").waitFor();
  await list(page);
  await panel(page);
  await escalations(page);
  await alerts(page);
  await tiles(page);
  await offline(page);
  return {};
}, { tolerate: /ERR_INTERNET_DISCONNECTED/ });

// On a phone the first patient is in the upper third, and the quick actions cover neither value nor reason at any width.
async function list(page) {
  await page.setViewportSize(phone);
  const { y } = await box(page.locator(row));
  assert.ok(y < 265, `the first patient stands ${y} from the top of a phone`);
  for (const width of [1040, 1280, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    const first = page.locator(row, { hasNotText: "Acknowledged" }).first(); // its buttons appear under the pointer
    await first.hover();
    await first.getByRole("button", { name: /^Acknowledge/ }).waitFor();
    const why = await box(first.locator(".why"));
    for (const button of await first.locator(".quick button").all()) {
      const { x } = await button.boundingBox();
      assert.ok(x >= why.x + why.width, `in a window of ${width} the reason is covered: it ends at ${why.x + why.width}, the button begins at ${x}`);
    }
  }
}

// The panel shows the date of birth, for a caller to confirm, and the patient's local time.
async function panel(page) {
  const first = page.locator(row).first();
  const id = await first.getAttribute("data-id");
  const patient = await (await signedIn("nurse@vigil.example"))("GET", `patients/${id}/`);
  await first.click();
  const drawer = page.locator("aside.drawer");
  await drawer.locator(".causes[aria-busy=false]").waitFor();
  const [year, , day] = patient.date_of_birth.split("-");
  const said = await drawer.locator(".of").innerText();
  assert.match(said, new RegExp(`born \\w+ ${Number(day)}, ${year}`));
  assert.match(said, /\d\d:\d\d.* local time/);
  await page.keyboard.press("Escape");
}

// The columns of the escalations have headers, each above its content.
async function escalations(page) {
  await section(page, "Escalations").click();
  const line = page.locator("li.escalation > .line").first();
  await line.waitFor();
  for (const [head, part] of [["Ladder", ".ladder"], ["Assigned to", ".with"], ["Patient and reason", ".whom"]]) {
    const [above, below] = [await box(page.locator(".escalation-heads > span", { hasText: head })), await box(line.locator(part))];
    assert.ok(Math.abs(above.x - below.x) < 2 && above.y < below.y, `${head} stands at ${above.x}, what it names at ${below.x}`);
  }
}

// The start time of a cause is not truncated.
async function alerts(page) {
  await section(page, "Alerts").click();
  await settled(page);
  const cell = page.locator("table.causes tr.cause > td.c6").first();
  await cell.waitFor();
  await cell.evaluate((node) => { node.textContent = "since yest. 08:48 AM"; });
  const [whole, seen] = await cell.evaluate((node) => [node.scrollWidth, node.clientWidth]);
  assert.ok(whole <= seen, `${whole} wide in a column of ${seen}`);
}

// On the patient page, values out of bounds come first.
async function tiles(page) {
  const api = await signedIn("nurse@vigil.example");
  const out = (await api("GET", "triage/patients/?page_size=100")).results
    .find(({ latest_vitals: v }) => v.pulse_oximetry?.spo2 <= 92 && v.pulse_oximetry.pulse > 50 && v.pulse_oximetry.pulse < 110);
  assert.ok(out, "nobody in the demo has too little oxygen");
  await page.evaluate((id) => consoleModule("router.js").then(({ go }) => go("patient", { id })), out.patient_id);
  const names = page.locator(".tiles h3");
  await names.first().waitFor();
  await page.waitForFunction(() => document.querySelector(".tiles h3")?.textContent === "SpO₂");
}

// Without a network the list is not shown as live; it is again after reconnecting.
async function offline(page) {
  await section(page, "Triage").click();
  await page.context().setOffline(true);
  await page.locator(".stream.cut").waitFor();
  await page.locator(".triage-page > .notice[role=alert]").waitFor();
  await page.context().setOffline(false);
  await page.locator(".stream.live").waitFor();
}
