// The patient portal on a phone, in both languages: axe, an unlikely value that is asked about before it is sent, the sentence after a
// saved reading, a caregiver who is added and switches between two patients.
import assert from "node:assert/strict";
import { base, input, run, shows } from "./browser.mjs";
import { prepare, look } from "./accessibility_checks.mjs";

const texts = {
  en: { language: "English", sections: "Sections", enter: "Enter a reading", upper: /^Upper number/, lower: /^Lower number/, save: "Save", right: "Is that right?",
    high: "It is high.", rest: "rest for five minutes", advice: "Call Rosa at 518-555-0100.", again: "Measure again", fine: "within your target", help: "Help with the device", looked: "Who looked at my data", sharing: "Sharing",
    add: "Add a person", email: "Email address", added: "gets a mail", signOut: "Sign out", person: "Person", readOnly: "not allowed for you",
    mail: "Email", password: "Password", signIn: "Sign in", signedOut: "You have signed out.", account: "Account" },
  es: { language: "Español", sections: "Secciones", enter: "Registrar una medición", upper: /^Número de arriba/, lower: /^Número de abajo/, save: "Guardar",
    right: "¿Es correcto?", high: "Está alto.", rest: "descanse cinco minutos", advice: "llame hoy al consultorio", now: "Llame al 911 ahora", again: "Medir otra vez", fine: "dentro de su meta", help: "Ayuda con el aparato",
    looked: "Quién vio mis datos", sharing: "Compartir", add: "Agregar a una persona", email: "Correo electrónico", added: "recibirá un correo", signOut: "Cerrar sesión", person: "Persona",
    readOnly: "pero no registrarlas", mail: "Correo electrónico", password: "Contraseña", signIn: "Iniciar sesión", signedOut: "Ha cerrado la sesión.", account: "Cuenta" },
};

const main = (page) => page.locator("#main");
const onPhone = (page) => page.setViewportSize({ width: 390, height: 844 });
const button = (page, name) => page.getByRole("button", { name, exact: true });

await run(async (page) => {
  await prepare(page);
  const wrong = [];
  for (const language of ["en", "es"]) {
    const words = texts[language];
    await signIn(page, "patient@vigil.example", language);
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
    await noEnglish(page, language, wrong, "my health");
    wrong.push(...(await look(page, `${language}, readings`, "#main", true)));
    await onPhone(page);
    await inTheChart(page);
    await page.getByRole("link", { name: words.sharing, exact: true }).click();
    await page.getByRole("heading", { name: words.looked }).waitFor();
    await noEnglish(page, language, wrong, "sharing");
    await oneLine(page);
    await button(page, words.add).click();
    await page.getByLabel(words.email).fill(`${language}@family.example`);
    wrong.push(...(await look(page, language, "#main", true)));
    await onPhone(page);
    await button(page, words.add).click();
    await shows(main(page), words.added);
    wrong.push(...(await look(page, `${language}, added`, "body", false)));
    await inAccount(page, words, wrong, language);
    await signOut(page, words);
    wrong.push(...(await look(page, `${language}, signed out`, "body", true)));
  }
  await atTheDoor(page, wrong);
  assert.deepEqual(wrong, []);
  await asCaregiver(page);
  await byStaff(page);
  return {};
}, { tolerate: /status of 40[01]/ });

// asCaregiver shows that the person is switched, and that a caregiver who may only read enters nothing.
async function asCaregiver(page) {
  await signIn(page, input.caregiver, "en");
  const person = page.getByLabel(texts.en.person);
  const names = await person.locator("option").allInnerTexts();
  assert.equal(names.length, 2);
  await person.selectOption({ label: names[0] });
  await button(page, texts.en.enter).waitFor();
  await person.selectOption({ label: names[1] });
  await shows(main(page), texts.en.readOnly);
  assert.equal(await button(page, texts.en.enter).count(), 0, "a reader can enter readings");
  assert.deepEqual(await page.getByRole("navigation").getByRole("link").allInnerTexts(), ["Readings", "Account"], "a caregiver has the patient's sections");
  await page.evaluate(() => { location.hash = "#/my-health?tab=sharing"; });
  await page.waitForTimeout(300);
  assert.equal(await page.getByText(texts.en.looked).count(), 0, "a caregiver sees who looked");
  await signOut(page, texts.en);
}

// byStaff shows who helps the patient in the chart, invites a person, and ends the access.
async function byStaff(page) {
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.getByRole("button", { name: "English", exact: true }).click();
  await page.getByLabel("Email").fill("nurse@vigil.example");
  await page.getByLabel("Password").fill(input.password);
  await button(page, "Sign in").click();
  await page.getByRole("navigation", { name: "Sections" }).waitFor();
  await page.evaluate((id) => consoleModule("router.js").then(({ go }) => go("patient", { id, tab: "people" })), input.patient);
  const rows = page.getByRole("region", { name: "Caregivers" }).getByRole("listitem");
  await shows(rows, "Rosa Alvarez");
  await shows(rows, "Sees and enters readings");
  await button(page, "Invite").click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Email").fill("nephew@family.example");
  await dialog.getByLabel("Relationship").selectOption({ label: "Relative" });
  await button(dialog, "Invite").click();
  await shows(rows.nth(1), "nephew@family.example");
  await button(page, "End access of nephew@family.example").click();
  await rows.nth(1).waitFor({ state: "detached" });
}

// inTheChart shows round numbers at equal steps, and a legend of one line for each number of a pressure.
async function inTheChart(page) {
  const ticks = (await page.locator("svg.pressure g text").allTextContents()).map(Number);
  const steps = new Set(ticks.slice(1).map((tick, i) => tick - ticks[i]));
  assert.ok(ticks.length > 2 && steps.size === 1 && ticks.every((tick) => tick % 20 === 0), `ticks of the chart: ${ticks}`);
  assert.deepEqual(await linesOf(page, ".portal-key li"), [1, 1]);
  assert.ok((await linesOf(page, ".portal .plain-list .value small")).every((lines) => lines === 1), "a value breaks");
  await oneLine(page);
}

// linesOf counts the lines of text in each element.
function linesOf(page, selector) {
  return page.locator(selector).evaluateAll((all) => all.map((one) => {
    const range = document.createRange();
    range.selectNodeContents(one);
    return new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom / 8))).size;
  }));
}

// oneLine finds a header of more than one line, or sections that are cut off.
async function oneLine(page) {
  const { height, cut } = await page.evaluate(() => ({ height: document.querySelector(".portal-top").offsetHeight,
    cut: [...document.querySelectorAll(".portal-top nav a")].filter((a) => a.scrollWidth > a.clientWidth).map((a) => a.textContent) }));
  assert.ok(height < 80, `the header is ${height} px high on the phone`);
  assert.deepEqual(cut, []);
}

// inAccount opens each part of the account page, whose views staff share; no English is left in Spanish.
async function inAccount(page, words, wrong, language) {
  await page.getByRole("link", { name: words.account, exact: true }).click();
  await page.getByRole("heading", { name: words.account, level: 1 }).waitFor();
  await page.getByText(language === "en" ? "This session." : "Esta sesión.").first().waitFor();
  wrong.push(...(await look(page, `${language}, account`, "#main", true)));
  await onPhone(page);
  await button(page, language === "en" ? "Change password" : "Cambiar la contraseña").click();
  await page.locator(".wrongs").waitFor();
  await noEnglish(page, language, wrong, "account with errors");
  await button(page, language === "en" ? "Set up" : "Activar").click();
  const dialog = page.getByRole("dialog");
  await dialog.locator("canvas, input").first().waitFor();
  await noEnglish(page, language, wrong, "second factor");
  await page.keyboard.press("Escape");
  await button(page, language === "en" ? "Sign out everywhere" : "Cerrar todas las sesiones").click();
  await dialog.waitFor();
  await noEnglish(page, language, wrong, "sessions");
  await page.keyboard.press("Escape");
}

// noEnglish finds words of the English catalogue that no Spanish text has, in what is shown in Spanish.
async function noEnglish(page, language, wrong, where) {
  if (language === "en") {
    return;
  }
  const found = await page.evaluate(async () => {
    const isConsole = document.querySelector("link[href$='/app/main.js']") !== null;
    const load = (name) => (isConsole ? consoleModule(name) : import(`/app/${name}`));
    const [{ catalogue }, { spanish: shared }] = await Promise.all([load("portal/words.js"), load("portal/spanish.js")]);
    const wordsOf = (texts) => new Set(texts.flatMap((text) => text.toLowerCase().match(/\p{L}{2,}/gu) ?? []));
    const spanish = wordsOf([...Object.values(catalogue).map(([, es]) => es), ...Object.values(shared)]);
    const common = "the and your you is are of with for this that not please have has was will be on in to at it if from by or".split(" ");
    const english = wordsOf([...Object.values(catalogue).map(([en]) => en), ...Object.keys(shared), ...common]);
    const own = [...document.querySelectorAll("[lang=en], .words, .brand, .facts dd, code")];
    const shown = [document.title.replace(/ – .*| · .*/, "")];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const within = walk.currentNode.parentElement;
      if (within.closest("main, header, dialog, .toasts, .ending, #main") && !within.closest("script, noscript, #unbuilt") && !own.some((one) => one.contains(within))) {
        shown.push(walk.currentNode.textContent);
      }
    }
    for (const node of document.querySelectorAll("[aria-label], [title], [placeholder], [alt]")) {
      own.some((one) => one.contains(node)) || shown.push(...["aria-label", "title", "placeholder", "alt"].map((name) => node.getAttribute(name) ?? ""));
    }
    return shown.filter((text) => [...wordsOf([text.replace(/\S+@\S+/g, "")])].some((word) => english.has(word) && !spanish.has(word)));
  });
  wrong.push(...found.map((text) => `${where}: English is left in Spanish: ${text.trim()}`));
}

async function signIn(page, email, language) {
  const words = texts[language];
  await page.goto(`${base}/`);
  await onPhone(page);
  await button(page, words.language).click();
  await page.getByLabel(words.mail).fill(email);
  await page.getByLabel(words.password).fill(input.password);
  await page.getByRole("button", { name: words.signIn, exact: true }).click();
  await page.getByRole("navigation", { name: words.sections }).waitFor();
}

// atTheDoor tries what a patient meets before sign-in, in Spanish: a wrong password, the reset, and the page that its link opens.
async function atTheDoor(page, wrong) {
  const words = texts.es;
  await page.goto(`${base}/`);
  await onPhone(page);
  await button(page, words.language).click();
  await page.getByLabel(words.mail).fill("patient@vigil.example");
  await page.getByLabel(words.password).fill("Wrong-Password-1");
  await button(page, words.signIn).click();
  await shows(page.getByRole("alert"), "no son correctos");
  await noEnglish(page, "es", wrong, "sign-in");
  await button(page, "¿Olvidó su contraseña?").click();
  await page.getByRole("button", { name: "Enviar enlace" }).waitFor();
  await noEnglish(page, "es", wrong, "reset");
  await page.getByLabel(words.mail).fill("patient@vigil.example");
  await button(page, "Enviar enlace").click();
  await page.getByText("ya enviamos el enlace").waitFor();
  await noEnglish(page, "es", wrong, "reset sent");
  await page.goto(`${base}/reset-password?lang=es&token=none`);
  await page.getByLabel("Contraseña nueva").fill("Mala-Clave-12345");
  await page.getByLabel("Repita la contraseña").fill("Mala-Clave-12345");
  await button(page, "Guardar la contraseña").click();
  await shows(page.getByRole("status"), "venció");
  await noEnglish(page, "es", wrong, "reset link");
  wrong.push(...(await look(page, "es, reset link", "body", true)));
}

async function signOut(page, words) {
  await button(page, words.signOut).click();
  await page.getByText(words.signedOut).waitFor();
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
