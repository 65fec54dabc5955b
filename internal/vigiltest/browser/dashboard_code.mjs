// A superuser with an authenticator app in PocketBase's dashboard: password, then code, in the dashboard's own forms.
import assert from "node:assert/strict";
import { base, input, run, shows } from "./browser.mjs";

// The dashboard expects a 401 for the second step, which the browser logs.
await run(async (page) => {
  await page.goto(`${base}/_/`);
  await page.locator("[name=identity]").fill(input.email);
  assert.equal(await page.locator('a[href="#/request-password-reset"]').count(), 0, "a way by mail is offered that does not exist");
  await page.locator("[name=password]").fill(input.password);
  await page.getByRole("button", { name: "Next" }).click();
  await shows(page.locator("form"), "Enter the six digits that your authenticator app shows");
  assert.equal(await page.locator("#otp_id").count(), 0);
  assert.equal(await page.getByText("Request another OTP").count(), 0);
  await page.locator("#otp_password").fill(input.code);
  await page.getByRole("button", { name: "Login" }).click();
  await page.waitForURL(/collection=/);
  await page.goto(`${base}/_/#/collections?collection=_superusers`);
  await shows(page.locator("tbody tr"), input.email);
  assert.ok(!(await page.content()).includes(input.secret), "the second factor is shown");
  return {};
}, { tolerate: /status of 401/ });
