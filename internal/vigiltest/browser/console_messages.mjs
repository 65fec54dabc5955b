// Messages: staff send a text, which arrives on the demo's phone; the phone answers with a reading, words, STOP, and one of an unknown number;
// staff read and close. The portal's thread both ways.
import assert from "node:assert/strict";
import path from "node:path";
import { base, input, refused, run, shows } from "./browser.mjs";
import { accessible, section, settled, signIn, signOff } from "./console.mjs";
import { signedIn } from "./service.mjs";

const api = await signedIn("nurse@vigil.example");
const patients = (await api("GET", "patients/?page_size=50")).results;
const own = (await (await signedIn("patient@vigil.example"))("GET", "patients/")).results[0];
const patient = patients.find(({ id }) => id === own.id);
const number = `+1${patient.phone.replace(/\D/g, "")}`;

await run(async (page) => {
  await signIn(page, "nurse@vigil.example");
  await openMessages(page);
  await withValues(page);
  await send(page, "Rest and take the reading again");
  await shows(page.locator(".thread"), "rest for 5 minutes");

  const phone = await page.context().newPage();
  await phone.goto(input.phones);
  await shows(phone.locator("section"), "rest for 5 minutes");
  await reply(phone, number, "128/82");
  await reply(phone, number, "The cuff is too tight");
  await add(phone, "+13035550000");
  await reply(phone, "+13035550000", "Is this the clinic?");

  await openMessages(page);
  await shows(page.locator(".thread .unread"), "The cuff is too tight");
  assert.equal(await page.locator(".thread .unread").count(), 1, "a reading that was filed needs no person");
  await accessible(page, "the messages of a patient");
  await page.screenshot({ path: path.join(process.env.PICTURES, "messages.png") });
  await page.setViewportSize({ width: 390, height: 844 });
  await accessible(page, "the messages of a patient on a phone");
  await page.screenshot({ path: path.join(process.env.PICTURES, "messages-phone.png") });
  await page.setViewportSize({ width: 1400, height: 1000 });
  await page.getByRole("button", { name: "Mark all as read" }).click();
  await page.locator(".thread .unread").waitFor({ state: "detached" });

  await page.getByLabel("Send by").selectOption({ label: "Portal" });
  await page.getByLabel("Text").fill("Your last pressure was 128/82. Please loosen the cuff.");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await shows(page.locator(".thread"), "loosen the cuff");

  await reply(phone, number, "STOP");
  await shows(phone.locator("section"), "no more messages");
  await page.reload();
  await openMessages(page);
  await shows(page.locator(".notice"), "sent STOP");

  await section(page, "Inbox").click();
  await page.getByRole("tab", { name: "Texts without a patient" }).click();
  await shows(page.locator("tbody"), "Is this the clinic?");
  await accessible(page, "the texts without a patient");
  await page.getByRole("button", { name: "Close the text from +13035550000" }).click();
  await shows(page.locator("#main"), "No open texts");
  await signOff(page);

  await portal(page);
  return {};
});

async function openMessages(page) {
  await page.goto(`${base}/#/triage`);
  await page.evaluate(async (id) => (await window.consoleModule("router.js")).go("patient", { id }), patient.id);
  await page.getByRole("navigation", { name: "About this patient" }).getByRole("button", { name: "Messages" }).click();
  await page.getByRole("heading", { name: "New message" }).waitFor();
  await settled(page);
}

// A text that others may read has no values and no names.
async function withValues(page) {
  await page.getByLabel("Text").fill(`${patient.first_name}, your pressure was 182/110`);
  await refused(page, () => page.getByRole("button", { name: "Send", exact: true }).click());
  await shows(page.locator(".wrong"), "number");
}

async function send(page, template) {
  await page.getByLabel("Message", { exact: true }).selectOption({ label: template });
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await shows(page.locator(".toast"), "Sent.");
}

async function add(phone, other) {
  await phone.getByLabel("Another phone").fill(other);
  await phone.getByRole("button", { name: "Add" }).click();
}

async function reply(phone, from, text) {
  const box = phone.locator("section", { hasText: from });
  await box.getByLabel(`Reply from ${from}`).fill(text);
  await box.getByRole("button", { name: "Send" }).click();
  await shows(box.locator("li.out"), text);
}

// The patient reads the thread and writes to the care team.
async function portal(page) {
  await page.setViewportSize({ width: 390, height: 844 });
  await signIn(page, "patient@vigil.example");
  await page.getByRole("button", { name: "English", exact: true }).click();
  await page.getByRole("link", { name: "Messages", exact: true }).click();
  await shows(page.locator(".thread"), "Please loosen the cuff.");
  assert.ok(!(await page.locator(".thread").innerText()).includes("@"), "the portal shows an address of staff");
  await page.getByLabel("Your message").fill("Thank you, that is better.");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await shows(page.locator(".thread"), "that is better");
  await accessible(page, "the messages of the portal");
  await page.screenshot({ path: path.join(process.env.PICTURES, "messages-portal.png"), fullPage: true });
  await api("POST", `patients/${patient.id}/messages/`, { template: "free_text", channel: "portal", text: "We look forward to your visit." });
  await shows(page.locator(".thread"), "We look forward"); // by the stream: the page is not touched
  await page.getByRole("link", { name: "Readings", exact: true }).click();
  await page.getByRole("button", { name: "Read and answer" }).click(); // the last word was the team's
  await shows(page.locator(".thread"), "We look forward");
}
