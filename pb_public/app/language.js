// The language of the sign-in page and of patients; staff read English. The English text is the key of its translation, so that views that
// staff share need no words of their own.
import { me } from "./session.js";
import { computed, effect, signal } from "./view.js";

/** The languages, by their code, with their own names. @type {[string, string][]} */
export const languages = [["en", "English"], ["es", "Español"]];

const known = (/** @type {string | null | undefined} */ code) => languages.find(([one]) => code?.toLowerCase().startsWith(one))?.[0];

/** The chosen language, else the patient's, else the browser's. */
const wanted = signal("en");
/** Whether the person chose it since the last sign-out: nothing is stored in the browser. */
let isChosen = false;
/** Spanish by English. @type {Record<string, string>} */
let translations = {};

/** The language in use. */
export const language = computed(() => (me.value && me.value.role !== "patient" ? "en" : wanted.value));

effect(() => { document.documentElement.lang = language.value; });
effect(() => { isChosen &&= me.value !== null; });

/** Uses a language once its words are loaded. @param {string} code */
async function use(code) {
  if (code !== "en") {
    translations = (await import("./portal/spanish.js")).spanish;
  }
  wanted.value = code;
}

/** Uses the language of the browser, or of the link that opened the page. @param {string} [code] */
export const beginLanguage = (code = navigator.language) => use(known(code) ?? "en");

/** @param {string} code */
export function chooseLanguage(code) {
  isChosen = true;
  void use(code);
}

/** Uses a patient's preferred language, unless the person chose another. @param {string | null | undefined} code */
export const preferLanguage = (code) => { const one = !isChosen && known(code); one && void use(one); };

/** An English text in the language in use; `{…}` is filled in. Parts of a page, which staff's views pass as texts, are returned unchanged.
 *  @param {any} text @param {Record<string, string | number>} [values] @returns {any} */
export const say = (text, values = {}) => (typeof text !== "string" ? text : (language.value === "en" ? text : translations[text] ?? text)
  .replace(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all)));

/** A message of the server in the language in use: a general one, if it is not translated. @param {string} text */
export const sayProblem = (text) => (language.value === "en" || text in translations ? say(text)
  : say("This did not work. Check what you entered and try again, or call the practice."));
