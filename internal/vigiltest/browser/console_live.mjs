// The live list: a gateway reading moves a patient, another browser shows it too, and a lost connection is shown.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { input, run, shows } from "./browser.mjs";
import { signIn } from "./console.mjs";
import { sendReading } from "./service.mjs";

await run(async (page) => {
  await signIn(page, "nurse@vigil.example");
  await shows(page.locator(".stream"), "Live");
  const list = page.getByRole("list", { name: "Patients by urgency" });
  const row = list.locator(`[data-id="${input.patient}"]`);
  await row.waitFor();
  const before = await row.getAttribute("aria-label");
  await sendReading(input.device, input.patient, { systolic: 212, diastolic: 126, pulse: 99 });
  await row.locator(".value b", { hasText: "212/126" }).waitFor();
  assert.notEqual(await row.getAttribute("aria-label"), before, "the score stayed");

  await row.focus();
  await page.keyboard.press("a"); // a critical alert is acknowledged with a note
  const note = page.getByRole("textbox", { name: /^Note for the/ });
  await note.fill("Called: took no medicine today.");
  await shows(page.locator(".drawer .causes"), "unacknowledged");
  await note.press("Control+Enter");
  await shows(page.locator(".toast"), "acknowledged");
  await row.focus();
  await page.keyboard.press("e");
  await page.getByRole("dialog").getByLabel("Reason").fill("Called twice, no answer.");
  await page.getByRole("dialog").getByRole("button", { name: "Escalate" }).click();
  await shows(page.locator(".toast"), "Escalated");

  await writeFile(input.ready, ""); // the service is now killed and restarted
  await page.locator(".stream", { hasText: "Not live" }).waitFor({ timeout: 60_000 });
  await page.locator(".stream", { hasText: /^Live$/ }).waitFor({ timeout: 120_000 });
  await row.waitFor();
  return {};
}, { tolerate: /ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|Failed to load resource|the stream|realtime/i });
