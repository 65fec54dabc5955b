// The patient portal on a phone, in both languages: axe, an unlikely value that is asked about before it is sent, the sentence after a
// saved reading, a caregiver who is added and switches between two patients.
import assert from "node:assert/strict";
import { base, input, run, shows } from "./browser.mjs";
import { prepare, look } from "./accessibility_checks.mjs";

const texts = {
  en: { language: "English", sections: "Sections", enter: "Enter a reading", upper: /^Upper number/, lower: /^Lower number/, save: "Save", right: "Is that right?",
    high: "It is high.", rest: "rest for five minutes", advice: "Call Rosa at 518-555-0100.", again: "Measure again", fine: "within your target", help: "Help with the device", looked: "Who looked at my data",
    add: "Add a person", email: "Email address", added: "gets a mail", signOut: "Sign out", person: "Person", readOnly: "not allowed for you" },
  es: { language: "Español", sections: "Secciones", enter: "Registrar una medición", upper: /^Número de arriba/, lower: /^Número de abajo/, save: "Guardar",
    right: "¿Es correcto?", high: "Está alto.", rest: "descanse cinco minutos", advice: "llame hoy al consultorio", now: "Llame al 911 ahora", again: "Medir otra vez", fine: "dentro de su meta", help: "Ayuda con el aparato",
    looked: "Quién vio mis datos", add: "Agregar a una persona", email: "Correo electrónico", added: "recibirá un correo", signOut: "Cerrar sesión", person: "Persona",
    readOnly: "pero no registrarlas" },
};

const main = (page) => page.locator("#main");
const onPhone = (page) => page.setViewportSize({ width: 390, height: 844 });
const button = (page, name) => page.getByRole("button", { name, exact: true });

await run(async (page) => {
  await prepare(page);
  const wrong = [];
  for (const language of ["en", "es"]) {
    const words = texts[language];
    await signIn(page, "patient@vigil.example");
    await onPhone(page);
    await button(page, words.language).click();
    assert.equal(await page.evaluate(() => document.documentElement.lang), language);
    await page.getByText(words.help).waitFor();
    const sent = [];
    page.on("request", (request) => request.method() === "POST" && request.url().includes("/ingestion/") && sent.push(request.url()));
    await type(page, words, words.enter, 300, 20);
    await shows(page.getByRole("alert"), words.right);
    assert.deepEqual(sent, [], "an unlikely value is sent before it is confirmed");
    await fill(page, words, 196, 124);
    await shows(main(page), words.high);
    await shows(main(page), words.rest);
    await shows(main(page), words.advice); // the practice's in English, ours in Spanish
    await shows(main(page), words.now ?? "Call 911 now");
    assert.equal(sent.length, 1);
    await type(page, words, words.again, 122, 76);
    await shows(main(page), words.fine);
    await page.getByText(words.help).click();
    await page.getByText(words.looked).click();
    await button(page, words.add).click();
    await page.getByLabel(words.email).fill(`${language}@family.example`);
    wrong.push(...(await look(page, language, "#main", true)));
    await onPhone(page);
    await button(page, words.add).click();
    await shows(main(page), words.added);
    wrong.push(...(await look(page, `${language}, added`, "body", false)));
    await signOut(page, words);
  }
  assert.deepEqual(wrong, []);
  await asCaregiver(page);
  return {};
});

// asCaregiver shows that the person is switched, and that a caregiver who may only read enters nothing.
async function asCaregiver(page) {
  await signIn(page, input.caregiver);
  await onPhone(page);
  const person = page.getByLabel(texts.en.person);
  const names = await person.locator("option").allInnerTexts();
  assert.equal(names.length, 2);
  await person.selectOption({ label: names[0] });
  await button(page, texts.en.enter).waitFor();
  await person.selectOption({ label: names[1] });
  await shows(main(page), texts.en.readOnly);
  assert.equal(await button(page, texts.en.enter).count(), 0, "a reader can enter readings");
  assert.equal(await page.getByText(texts.en.looked).count(), 0, "a caregiver sees who looked");
  await signOut(page, texts.en);
}

async function signIn(page, email) {
  await page.goto(`${base}/`);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(input.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Sections" }).waitFor();
}

async function signOut(page, words) {
  await button(page, words.signOut).click();
  await page.getByText("You have signed out.").waitFor();
}

async function type(page, words, open, upper, lower) {
  await button(page, open).click();
  await fill(page, words, upper, lower);
}

async function fill(page, words, upper, lower) {
  await page.getByLabel(words.upper).fill(String(upper));
  await page.getByLabel(words.lower).fill(String(lower));
  await button(page, words.save).click();
}
