// Questionnaires on a phone, in both languages: axe, an unanswered item, what the patient is told, one request for one press.
import assert from "node:assert/strict";
import { base, input, run, shows } from "./browser.mjs";
import { prepare, look } from "./accessibility_checks.mjs";

const texts = {
  en: { language: "English", mood: "Answer: Mood", heart: "Answer: Heart failure check", send: "Send", all: "Please answer each question.", rest: "Yes, even when I sit still",
    red: "call 911 now", never: "Not at all", daily: "Nearly every day", positive: "may ask you more", next: "Next time:", signOut: "Sign out", usual: /^(No|Yes, as usual)/ },
  es: { language: "Español", mood: "Responder: Estado de ánimo", heart: "Responder: Control de insuficiencia cardíaca", send: "Enviar",
    all: "Por favor, responda cada pregunta.", rest: "Sí, incluso sentado(a) sin moverme", red: "llame al 911 ahora", never: "Ningún día", daily: "Casi todos los días",
    positive: "quizá le haga más preguntas", next: "Próxima vez:", signOut: "Cerrar sesión", usual: /^(No|Sí, como siempre)/ },
};

const main = (page) => page.locator("#main");
const button = (page, name) => page.getByRole("button", { name, exact: true });
const send = (page, words) => page.locator("form:has(.question)").getByRole("button", { name: words.send, exact: true }).click();
const onPhone = (page) => page.setViewportSize({ width: 390, height: 844 });

await run(async (page) => {
  await prepare(page);
  const wrong = [];
  const sent = [];
  page.on("request", (request) => request.method() === "POST" && request.url().includes("/answers/") && sent.push(request.headers()["idempotency-key"]));
  for (const language of ["en", "es"]) {
    const words = texts[language];
    await page.goto(`${base}/`);
    await page.getByLabel("Email").fill("patient@vigil.example");
    await page.getByLabel("Password").fill(input.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation", { name: "Sections" }).waitFor();
    await onPhone(page);
    await button(page, words.language).click();

    await button(page, words.mood).click();
    await page.getByLabel(words.never).first().check();
    await send(page, words);
    await shows(main(page), words.all);
    await page.getByLabel(words.daily).nth(1).check();
    wrong.push(...(await look(page, `${language}, PHQ-2`, "#main", true)));
    await onPhone(page);
    await send(page, words);
    await shows(main(page), words.positive);
    await shows(main(page), words.next);

    await button(page, words.heart).click();
    const groups = page.locator("fieldset.question");
    for (let i = 1, n = await groups.count(); i < n; i++) {
      await groups.nth(i).getByLabel(words.usual).first().check();
    }
    await page.getByLabel(words.rest).check();
    await send(page, words);
    await shows(page.getByRole("alert"), words.red);
    wrong.push(...(await look(page, `${language}, red zone`, "body", false)));
    await onPhone(page);
    await button(page, words.signOut).click();
    await page.getByText(/^(You have signed out|Ha cerrado la sesión)\.$/).waitFor(); // the page stays in the user's language
  }
  assert.equal(sent.length, 4);
  assert.equal(new Set(sent).size, 4, "answers share an idempotency key");
  assert.ok(sent.every(Boolean), "answers have no idempotency key");
  assert.deepEqual(wrong, []);
  return {};
});
