// Shared by the console's scripts: sign-in, navigation, and axe's findings.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { base, input } from "./browser.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const heading = (page, name) => page.getByRole("heading", { level: 1, name });
// section is a link of the menu; Account stands behind the initials, except in the portal.
export function section(page, name) {
  const link = page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name });
  return name !== "Account" ? link : { async click() {
    if (await link.count() > 0) {
      return link.click();
    }
    await openUserMenu(page);
    return page.getByRole("link", { name, exact: true }).click();
  } };
}

export const openUserMenu = (page) => page.locator("header [popovertarget]:visible").click();

// signIn opens the console and signs in; the first section of the menu is the user's home.
export async function signIn(page, email) {
  await page.goto(`${base}/`);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(input.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Sections" }).waitFor();
}

export async function signOff(page) {
  const out = page.getByRole("button", { name: "Sign out", exact: true });
  if (!await out.isVisible()) {
    await openUserMenu(page);
  }
  await out.click();
  await page.getByText("You have signed out.").waitFor();
}

// settled waits until no request is pending.
export async function settled(page) {
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))); // a request just made is not visible yet
  await page.waitForFunction(() => document.querySelector(".state.waiting") === null && document.querySelector("h1") !== null);
}

// accessible fails on axe's serious or critical findings for the current page.
export async function accessible(page, what) {
  if (!(await page.evaluate(() => "axe" in window))) {
    await page.evaluate(axe); // a policy against inline scripts does not apply to the debugger
  }
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }));
  const barriers = violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html).join(" | ")}`);
  assert.deepEqual(barriers, [], `${what} has barriers`);
}
