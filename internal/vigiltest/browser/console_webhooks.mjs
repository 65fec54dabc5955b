// Webhooks, as an administrator lives with them: one is made, its secret shown once; it is tried, its receiver says no, what was given up is sent
// again, it is switched off and on, its secret is rotated, and it is removed.
import assert from "node:assert/strict";
import { input, refused, run, shows } from "./browser.mjs";
import { accessible, section, settled, signIn, signOff } from "./console.mjs";

await run(async (page) => {
  const dialog = page.getByRole("dialog");
  const toast = page.locator(".toast").last();
  const log = dialog.getByRole("region", { name: "Deliveries" }).locator("tbody tr");
  const say = (status) => fetch(`${input.receiver}/say/${status}`, { method: "PUT" });
  await signIn(page, input.email);
  await section(page, "Operations").click();
  await page.getByRole("tab", { name: "Webhooks" }).click();
  await shows(page.getByRole("main"), "Nobody is told what happens");

  await page.getByRole("button", { name: "Add a webhook" }).click();
  await dialog.getByLabel("Address").fill("https://10.0.0.1/");
  await refused(page, () => dialog.getByRole("button", { name: "Add", exact: true }).click());
  await shows(dialog, "Must be an https address of a public host");
  await shows(dialog, "Name 1 to 13 events.");
  await dialog.getByLabel("Address").fill(`${input.receiver}/hook?token=secret`);
  await dialog.getByLabel("A patient was enrolled").check();
  await accessible(page, "a new webhook");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await shows(dialog, "It is shown only now");
  const first = await dialog.locator("code").innerText();
  assert.match(first, /^whsec_/);
  await fetch(`${input.receiver}/secret/${encodeURIComponent(first)}`, { method: "PUT" });
  await dialog.getByRole("button", { name: "I have kept it" }).click();

  const rows = page.getByRole("region", { name: "Webhooks" }).locator("tbody tr");
  await shows(rows, "patient.created");
  await shows(rows.locator(".badge"), "In use");
  assert.ok(!(await page.getByRole("main").innerText()).includes("token=secret"), "the list shows the whole address");
  await accessible(page, "the list of webhooks");
  await rows.getByRole("button").first().click();
  await dialog.getByRole("button", { name: "Send a test" }).click();
  await shows(log.first(), "webhook.test");
  await shows(log.first().locator(".badge"), "Delivered");
  await accessible(page, "a webhook");
  await say(500);
  await dialog.getByRole("button", { name: "Send a test" }).click();
  await shows(toast, "The receiver did not take the test: 500: it said no.");

  const enrolled = await (await fetch(`${input.receiver}/enrol`, { method: "PUT" })).text(); // the test makes a patient, and waits until it was given up
  await dialog.getByLabel("Show").selectOption("failed");
  await shows(log.filter({ hasText: enrolled }).locator(".badge"), "Failed");
  await shows(log.filter({ hasText: enrolled }), "500: it said no");
  await say(200);
  await dialog.getByRole("button", { name: `Send patient.created ${enrolled} again` }).click();
  await shows(toast, "It is sent again.");
  await fetch(`${input.receiver}/taken/${enrolled}`, { method: "PUT" }); // waits for it
  await dialog.getByLabel("Show").selectOption("delivered");
  await shows(log.filter({ hasText: enrolled }).locator(".badge"), "Delivered");

  await dialog.getByRole("button", { name: "Switch off" }).click();
  await shows(dialog.getByRole("alert"), "What happens meanwhile waits");
  await dialog.getByRole("button", { name: "Switch it off" }).click();
  await shows(dialog.locator(".facts .badge"), "Off");
  await dialog.getByRole("button", { name: "Switch on" }).click();
  await shows(dialog.locator(".facts .badge"), "In use");
  await dialog.getByRole("button", { name: "Rotate the secret" }).click();
  await dialog.getByRole("button", { name: "Another secret" }).click();
  await shows(dialog, "It is shown only now");
  const second = await dialog.locator("code").innerText();
  assert.match(second, /^whsec_/);
  assert.notEqual(first, second);
  await dialog.getByRole("button", { name: "I have kept it" }).click();
  await rows.getByRole("button").first().click();
  assert.ok(!(await dialog.innerText()).includes("whsec_"), "a secret is shown again");
  await dialog.getByRole("button", { name: "Remove" }).click();
  await dialog.getByRole("button", { name: "Remove it" }).click();
  await shows(page.getByRole("main"), "Nobody is told what happens");
  await settled(page);
  await signOff(page);
  return {};
});
