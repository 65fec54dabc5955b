// Sign-in with the practice's identity provider: one click there and back, nothing left in the URL; and a redirect back that
// this browser did not start.
import assert from "node:assert/strict";
import { base, run, shows } from "./browser.mjs";
import { accessible, settled, signOff } from "./console.mjs";

const button = (page) => page.getByRole("button", { name: "Sign in with your practice account", exact: true });
// Chromium logs each answer from 400 on; here one is expected.
const tolerate = /status of 400/;

await run(async (page) => {
  await page.goto(`${base}/`);
  await button(page).waitFor();
  await accessible(page, "signing in with a provider");
  await button(page).click();
  await page.getByRole("navigation", { name: "Sections" }).waitFor();
  await settled(page);
  assert.doesNotMatch(page.url(), /code=|state=/);
  assert.equal(await page.evaluate(() => document.cookie), "");
  await signOff(page);

  await page.goto("about:blank");
  await page.goto(`${base}/#/sign-on?code=stolen&state=made-up`);
  await shows(page.getByRole("alert"), "This sign-in was not begun in this browser");
  assert.doesNotMatch(page.url(), /code=|state=/);
  await page.getByLabel("Email").waitFor();
  return {};
}, { tolerate });
