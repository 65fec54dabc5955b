// Each role opens each of its sections, and the patient page with its tabs where allowed: everything loads without an error
// or refusal.
import assert from "node:assert/strict";
import { input, run } from "./browser.mjs";
import { accessible, section, settled, signIn, signOff } from "./console.mjs";

await run(async (page) => {
  const seen = {};
  for (const [role, sections] of Object.entries(input.roles)) {
    await signIn(page, `${role}@vigil.example`);
    const links = await page.getByRole("navigation", { name: "Sections" }).getByRole("link").allInnerTexts();
    seen[role] = links.map((link) => link.replace(/\s*▲?\s*\d+(\s+(unread|critical))?\s*$/, "").trim());
    assert.deepEqual(seen[role], sections, `the menu of ${role}`);
    for (const name of new Set([...sections, "Account"])) {
      await section(page, name).click();
      await page.getByRole("heading", { level: 1 }).waitFor();
      await settled(page);
      assert.equal(await page.locator(".state.failed, .state.forbidden").count(), 0, `${name} of ${role} could not be loaded`);
      await accessible(page, `${name} of ${role}`);
      if (role === "admin") { // the longest menu
        await fits(page, name);
      }
      if (name === "Escalations") {
        await lookAtOnCall(page, role);
      }
    }
    if (sections.includes("Patients")) {
      await lookAtPatient(page, role);
    }
    await signOff(page);
  }
  assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]), [0, 0, ""], "something stays in the browser");
  return seen;
});

// fits: the bar takes two lines on a desktop and one on a phone, whose menu is at the lower edge, and no view is wider than a phone.
async function fits(page, name) {
  const desk = page.viewportSize();
  for (const [width, lines] of [[1300, 2], [390, 1]]) {
    await page.setViewportSize({ width, height: desk.height });
    const { wide, high } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, high: document.querySelector(".top").offsetHeight / 16 }));
    assert.ok(wide <= width, `${name} is ${wide} wide in a window of ${width}`);
    assert.ok(high < 1.25 + 3 * lines, `the menu is ${high} rem high in a window of ${width}, with ${name}`);
  }
  await page.setViewportSize(desk);
}

async function lookAtOnCall(page, role) {
  await page.getByRole("button", { name: "On call" }).click();
  await page.getByRole("heading", { level: 1, name: "On call" }).waitFor();
  await settled(page);
  assert.equal(await page.locator(".state.failed, .state.forbidden").count(), 0, `On call of ${role} could not be loaded`);
  assert.equal(await page.getByRole("button", { name: "Add a shift" }).count() > 0, ["admin", "manager"].includes(role), `${role} and the rota`);
  await accessible(page, `On call of ${role}`);
  if (role === "admin") {
    await fits(page, "On call");
  }
}

async function lookAtPatient(page, role) {
  await section(page, "Patients").click();
  await page.locator("tbody button.link").first().click();
  const tabs = page.getByRole("navigation", { name: "About this patient" });
  await tabs.waitFor();
  assert.ok(!/[0-9a-f]{8}-/.test(page.url()), `the address tells who is looked at: ${page.url()}`);
  for (const name of await tabs.getByRole("button").allInnerTexts()) {
    await tabs.getByRole("button", { name: name.replace(/\s*\d+(\s+open)?\s*$/, "").trim() }).click();
    await settled(page);
    assert.equal(await page.locator(".state.failed, .state.forbidden").count(), 0, `${name} of a patient could not be loaded by ${role}`);
    await accessible(page, `${name} of a patient, for ${role}`);
  }
}
