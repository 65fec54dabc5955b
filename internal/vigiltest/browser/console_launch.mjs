// A launch from the EMR: without a link the user signs in once; afterwards the patient opens without a sign-in, in two tabs too, and no
// parameter of the launch stays in an address. A refusal is a page that says what to do.
import assert from "node:assert/strict";
import { base, input, run, shows } from "./browser.mjs";
import { accessible, settled } from "./console.mjs";

const launchFrom = (issuer) => `${base}/launch?${new URLSearchParams({ iss: issuer, launch: "abc" })}`;
const secrets = /code=|state=|launch=|iss=|ticket/;
// Chromium logs each answer from 400 on; here they are expected.
const tolerate = /status of 40[03]/;

async function patientIsOpen(page) {
  await page.getByRole("navigation", { name: "About this patient" }).waitFor();
  await shows(page.getByRole("heading", { level: 1 }), input.patient);
  await settled(page);
  assert.doesNotMatch(page.url(), secrets);
}

await run(async (page) => {
  await page.goto(launchFrom(input.issuer));
  await shows(page.getByRole("alert"), "Sign in once to link them");
  assert.doesNotMatch(page.url(), secrets);
  await accessible(page, "a user without a link");
  await page.getByLabel("Email").fill("nurse@vigil.example");
  await page.getByLabel("Password").fill(input.password);
  await page.keyboard.press("Enter");
  await patientIsOpen(page);
  await shows(page.locator(".toast"), "Your accounts are linked");

  const tab = await page.context().newPage();
  for (const opened of [tab, page]) {
    await opened.goto(launchFrom(input.issuer));
    await patientIsOpen(opened);
  }
  await tab.goBack();
  assert.doesNotMatch(tab.url(), secrets);
  await tab.close();

  await page.goto("about:blank");
  await page.goto(launchFrom("https://unknown.example"));
  await shows(page.getByRole("alert"), "not among those that may open Vigil");
  await accessible(page, "an EMR that is not configured");
  await page.goto("about:blank");
  await page.goto(`${base}/#/launch?code=stolen&state=made-up`);
  await shows(page.getByRole("alert"), "This sign-in was not begun in this browser");
  assert.doesNotMatch(page.url(), secrets);
  await page.goto("about:blank");
  await page.goto(`${base}/#/launch?problem=cookie_blocked&iss=x&launch=y`);
  const out = page.getByRole("link", { name: "Open in a new window" });
  await out.waitFor();
  assert.equal(await out.getAttribute("href"), "/launch?iss=x&launch=y");
  await out.focus();
  return {};
}, { tolerate });
