// Chooses the language of the sign-in page and of the portal.
import { chooseLanguage, language, languages, say } from "../language.js";
import { html } from "../view.js";

export const LanguageChoice = () => html`<div class="choices" role="group" aria-label=${say("Language")}>${languages.map(([code, name]) =>
  html`<button key=${code} type="button" lang=${code} aria-pressed=${code === language.value ? "true" : "false"}
    onClick=${() => chooseLanguage(code)}>${name}</button>`)}</div>`;
