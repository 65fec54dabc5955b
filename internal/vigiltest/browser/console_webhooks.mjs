// Webhook endpoints, for an administrator: one is created and its secret shown once; it is tested, its receiver fails, dead
// letters are requeued, it is disabled and enabled, its secret is rotated, and it is deleted.
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
  await settingsAndAudit(page);
  await page.getByRole("tab", { name: "Webhooks" }).click();
  await shows(page.getByRole("main"), "No webhooks yet");

  await page.getByRole("button", { name: "Add a webhook" }).click();
  await dialog.getByLabel("URL").fill("https://10.0.0.1/");
  await refused(page, () => dialog.getByRole("button", { name: "Add", exact: true }).click());
  await shows(dialog, "Must be an https address of a public host");
  await shows(dialog, "Name 1 to 13 events.");
  await dialog.getByLabel("URL").fill(`${input.receiver}/hook?token=secret`);
  await dialog.getByLabel("A patient was enrolled").check();
  await accessible(page, "a new webhook");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await shows(dialog, "Shown only once");
  const first = await dialog.locator("code").innerText();
  assert.match(first, /^whsec_/);
  await fetch(`${input.receiver}/secret/${encodeURIComponent(first)}`, { method: "PUT" });
  await dialog.getByRole("button", { name: "I’ve saved it" }).click();

  const rows = page.getByRole("region", { name: "Webhooks" }).locator("tbody tr");
  await shows(rows, "A patient was enrolled");
  await shows(rows.locator(".badge"), "Active");
  assert.ok(!(await page.getByRole("main").innerText()).includes("token=secret"), "the list shows the whole address");
  await accessible(page, "the list of webhooks");
  await rows.getByRole("button").first().click();
  await dialog.getByRole("button", { name: "Send test" }).click();
  await shows(log.first(), "Test");
  await shows(log.first().locator(".badge"), "Delivered");
  await accessible(page, "a webhook");
  await say(500);
  await dialog.getByRole("button", { name: "Send test" }).click();
  await shows(toast, "Test failed: 500: rejected.");
  await shows(dialog.locator(".facts"), "500: rejected");

  const enrolled = await (await fetch(`${input.receiver}/enrol`, { method: "PUT" })).text(); // the test enrolls a patient, and waits for the dead letter
  await dialog.getByLabel("Show").selectOption("failed");
  await shows(log.filter({ hasText: enrolled }).locator(".badge"), "Failed");
  await shows(log.filter({ hasText: enrolled }), "500: rejected");
  await say(200);
  await dialog.getByRole("button", { name: `Resend “A patient was enrolled” ${enrolled}` }).click();
  await shows(toast, "Resending.");
  await fetch(`${input.receiver}/taken/${enrolled}`, { method: "PUT" }); // waits for the delivery
  await dialog.getByLabel("Show").selectOption("delivered");
  await shows(log.filter({ hasText: enrolled }).locator(".badge"), "Delivered");

  await dialog.getByRole("button", { name: "Turn off" }).click();
  await shows(dialog.getByRole("alert"), "New events are queued");
  await dialog.getByRole("button", { name: "Turn off webhook" }).click();
  await shows(dialog.locator(".facts .badge"), "Off");
  await dialog.getByRole("button", { name: "Turn on" }).click();
  await shows(dialog.locator(".facts .badge"), "Active");
  await dialog.getByRole("button", { name: "Rotate secret" }).click();
  await dialog.getByRole("button", { name: "Create new secret" }).click();
  await shows(dialog, "Shown only once");
  const second = await dialog.locator("code").innerText();
  assert.match(second, /^whsec_/);
  assert.notEqual(first, second);
  await dialog.getByRole("button", { name: "I’ve saved it" }).click();
  await rows.getByRole("button").first().click();
  assert.ok(!(await dialog.innerText()).includes("whsec_"), "a secret is shown again");
  await dialog.getByRole("button", { name: "Remove" }).click();
  await dialog.getByRole("button", { name: "Remove webhook" }).click();
  await shows(page.getByRole("main"), "No webhooks yet");
  await settled(page);
  await signOff(page);
  return {};
});

// settingsAndAudit reads the service's settings, of which none can be changed and no secret is shown, and finds an event by its name.
async function settingsAndAudit(page) {
  await page.getByRole("tab", { name: "Settings" }).click();
  const table = page.getByRole("region", { name: "Settings" });
  await page.getByLabel("Search").fill("encryption keys");
  await shows(table, "Set, hidden");
  assert.equal(await table.locator("tbody tr").count(), 1);
  await page.getByLabel("Search").fill("practice's time zone");
  await shows(table, "America/New_York");
  await accessible(page, "the settings");
  await page.getByRole("tab", { name: "Audit" }).click();
  await page.getByRole("combobox", { name: "Event" }).fill("chart op");
  await page.getByRole("option", { name: /Chart opened/ }).click();
  await page.waitForFunction(() => location.hash.includes("event=patient.read"));
  await page.getByLabel("Record type").selectOption({ label: "Patient" });
  await accessible(page, "the audit trail");
  await settled(page);
}
