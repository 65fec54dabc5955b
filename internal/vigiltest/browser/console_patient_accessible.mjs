// The patient page for every role, in both color schemes, on a phone, at 200 % text size, and by keyboard alone.
import assert from "node:assert/strict";
import { input, run, shows } from "./browser.mjs";
import { accessible, section, settled, signIn, signOff } from "./console.mjs";

await run(async (page) => {
  const desk = page.viewportSize();
  await signIn(page, "nurse@vigil.test");
  await open(page);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const [what, width, height] of [["a desk", 1440, 960], ["letters twice as large", 720, 480], ["a phone", 390, 844], ["four times as large", 320, 256]]) {
      await page.setViewportSize({ width, height });
      await settled(page);
      await accessible(page, `the patient, ${colorScheme}, ${what}`);
      const wide = await page.evaluate((least) => (least ? document.getElementById("main") : document.documentElement).scrollWidth, width === 320);
      assert.ok(wide <= width, `the patient is ${wide} wide in a window of ${width}`);
    }
  }
  await page.setViewportSize({ width: 390, height: 844 });
  const bar = page.getByRole("group", { name: "Actions" });
  for (const box of await bar.locator("a, button").all()) {
    const { height } = await box.boundingBox();
    assert.ok(height >= 44, `a thumb has only ${height} pixels`);
  }
  assert.equal(await bar.getByRole("link", { name: "Call" }).getAttribute("href"), "tel:5185550120");
  await page.setViewportSize(desk);

  // By keyboard: the menu of rare actions opens, closes and returns the focus; the days can be paged.
  const more = page.getByLabel("More actions");
  await more.focus();
  await page.keyboard.press("Enter");
  await shows(page.getByRole("button", { name: "Print this page" }), "Print");
  await page.keyboard.press("Escape");
  assert.equal(await page.getByRole("button", { name: "Print this page" }).isVisible(), false, "Escape leaves the menu open");
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "More actions", "the focus is lost");
  const days = page.getByRole("region", { name: "Days with readings" });
  const range = await days.locator(".count").innerText();
  await days.getByRole("button", { name: "Previous period" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(([was]) => { const now = document.querySelector(".days .count")?.innerText; return now && now !== was; }, [range]);
  await signOff(page);

  // A role without chart access sees the days and the contact data, and no link to pages that it may not open.
  await signIn(page, "data_monitor@vigil.test");
  await open(page);
  assert.equal(await page.getByRole("region", { name: "Days with readings" }).count(), 1);
  for (const hidden of ["Out of range", "Open work"]) {
    assert.equal(await page.getByRole("region", { name: hidden }).count(), 0, `${hidden} is shown to who bills`);
  }
  for (const door of ["Visit report", "Escalate", "Acknowledge"]) {
    assert.equal(await page.getByRole("button", { name: door }).count(), 0, `${door} is offered to who bills`);
  }
  for (const key of ["a", "e", "p", "r"]) {
    await page.keyboard.press(key);
  }
  assert.equal(await page.getByRole("dialog").count(), 0, "a key opens what the role may not");
  await accessible(page, "the patient, for who bills");
  await signOff(page);

  // A medical assistant is not offered actions of other roles.
  await signIn(page, "ma@vigil.test");
  await open(page);
  await shows(page.getByRole("region", { name: "Days with readings" }), "(16 needed)");
  return {};
}, { timezoneId: "Asia/Tokyo" });

async function open(page) {
  await section(page, "Patients").click();
  await page.locator("tbody button.link", { hasText: input.name }).click();
  await page.getByRole("navigation", { name: "About this patient" }).waitFor();
  await settled(page);
}
