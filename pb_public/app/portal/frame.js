// The frame of the patient portal: language, person, account and sign-out, for the phone first.
import { go, place } from "../router.js";
import { myPatients, practice } from "../session.js";
import { signOut } from "../sign_on.js";
import { html, signal, useEffect } from "../view.js";
import { language } from "../language.js";
import { LanguageChoice } from "../ui/language_choice.js";
import { t } from "./words.js";

/** The chosen patient of an account with several. */
const chosenId = signal("");

/** The patient that the portal shows, or undefined. */
export const shownPatient = () => myPatients.value.find(({ id }) => id === chosenId.value) ?? myPatients.value[0];

/** @param {{scope: string, first_name: string | null, last_name: string | null}} patient */
const nameOf = (patient) => (patient.scope === "self" ? t("me") : [patient.first_name, patient.last_name].filter(Boolean).join(" "));

/** Word, tab of the readings, and whether only the patient's own account has it. @type {[import("./words.js").Word, string, boolean][]} */
const tabs = [["readings", "", false], ["thread", "messages", true], ["sharing", "sharing", true], ["account", "", false]];

/** @param {{view: string, children: any}} props */
export function PortalFrame({ view, children }) {
  useEffect(() => {
    document.title = `${t(view === "account" ? "account" : "portal")} – ${practice.value.name || "Vigil"}`;
  }, [language.value, view]);
  const shown = shownPatient();
  return html`
    <a class="skip" href="#main"
      onClick=${(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>${t("skip")}</a>
    <header class="portal-top">
      <span class="brand"><img src="/favicon.svg" alt="" width="28" height="28" /> ${practice.value.name || "Vigil"}</span>
      <${LanguageChoice} />
      <nav aria-label=${t("sections")}>${tabs.filter(([, , isOwn]) => !isOwn || shown?.scope === "self").map(([word, tab]) => {
        const to = word === "account" ? "account" : "my-health";
        return html`<a key=${word} href=${`#/${to}`} aria-current=${to === view && tab === (place.value.query.tab ?? "") ? "page" : null}
          onClick=${(event) => { event.preventDefault(); go(to, {}, tab ? { tab } : {}); }}>${t(word)}</a>`;
      })}</nav>
    </header>
    <main id="main" class="portal" tabindex="-1">
      ${view === "my-health" && myPatients.value.length > 1 && html`<div class="field">
        <label for="portal-person">${t("person")}</label>
        <select id="portal-person" value=${shown?.id} onChange=${(event) => { chosenId.value = event.target.value; }}>
          ${myPatients.value.map((patient) => html`<option key=${patient.id}
            value=${patient.id}>${nameOf(patient)}</option>`)}</select></div>`}
      ${children}
      <button class="portal-end" onClick=${() => signOut()}>${t("signOut")}</button>
    </main>`;
}
