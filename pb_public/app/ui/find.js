// Find (Ctrl-K): patients, staff, claims, pages and actions, by keyboard from any page.
import { get } from "../api.js";
import { can, scopeOf, roleNames } from "../permissions.js";
import { actingKeys } from "../keys.js";
import { go } from "../router.js";
import { sectionsOf } from "../sections.js";
import { signOut } from "../sign_on.js";
import { startTimer } from "../timer.js";
import { ageAndSex } from "./age.js";
import { calendarDate, humanize } from "./format.js";
import { Keys } from "./key_list.js";
import { asProblem } from "./states.js";
import { html, useEffect, useId, useMemo, useRef, useState } from "../view.js";

/** @typedef {{group: string, text: string, more?: string, key?: string, act: () => void}} Found */

const debounceTime = 200; // milliseconds without a key before a request

/** @param {Found} one */
const keyOf = ({ group, text, more = "" }) => `${group} ${text} ${more}`;

/** Whether the text contains all words. @param {string} text @param {string} term */
const matches = (text, term) => term.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));

/** The console's own pages and actions. @returns {Found[]} */
const localItems = () => [
  ...sectionsOf().map((s) => ({ group: "Pages", text: s.name, key: `g ${s.key}`, act: () => go(s.view) })),
  ...actingKeys().filter(({ key }) => !key.startsWith("g ")).map(({ key, label, act }) =>
    ({ group: "Actions on this page", text: label, key, act })),
  { group: "Actions", text: "Sign out", act: () => { void signOut(); } },
];

/** "67 F · MRN-00000020": distinguishes patients with the same name. @param {any} p */
function patientDetails(p) {
  return [ageAndSex(p), p.mrn, p.status === "archived" && "archived"].filter(Boolean).join(" · ");
}

/** Actions on the best match, without opening the chart first. @param {any} p @returns {Found[]} */
function patientActions(p) {
  if (!p?.active || p.redacted_fields?.length > 0) {
    return [];
  }
  const group = `Actions on ${p.first_name} ${p.last_name}`;
  const call = () => {
    go("patient", { id: p.id });
    location.assign(`tel:${p.phone.replace(/[^\d+]/g, "")}`);
    void startTimer(p.id, { call: true });
  };
  return [
    ...(p.phone && can("logTime") ? [{ group, text: `Call ${p.phone} and start the timer`, act: call }] : []),
    ...(can("readClinical") ? [{ group, text: "Open their alerts", act: () => go("patient", { id: p.id, tab: "alerts" }) }] : []),
  ];
}

/** Searches on the server. @param {string} term @param {AbortSignal} signal @returns {Promise<Found[]>} */
async function search(term, signal) {
  const [patients, people, claims] = await Promise.all([
    scopeOf("read_patients") === "all" ? get("patients/", { search: term, page_size: 6 }, signal) : { results: [], count: 0 },
    can("readStaff") ? get("users/staff/", { search: term, page_size: 4 }, signal) : { results: [] },
    can("manageBilling") ? get("billing/entries/", { search: term, page_size: 4 }, signal) : { results: [], count: 0 },
  ]);
  const more = patients.count - patients.results.length;
  return [
    ...patients.results.map((/** @type {any} */ p) => ({
      group: "Patients", text: `${p.first_name} ${p.last_name}`, more: patientDetails(p), act: () => go("patient", { id: p.id }),
    })),
    ...(more > 0
      ? [{ group: "Patients", text: `All ${patients.count} matches`, act: () => go("patients", {}, {}, { search: term }) }] : []),
    ...patientActions(patients.results[0]),
    ...people.results.map((/** @type {any} */ one) => ({
      group: "People", text: one.name, more: `${roleNames[one.role] ?? one.role}, ${one.email}`,
      act: () => (can("readUsers") ? go("operations", {}, { tab: "users" }, { search: one.name }) : location.assign(`mailto:${one.email}`)),
    })),
    ...claims.results.map((/** @type {any} */ e) => ({
      group: "Claims", text: `${e.claim_id} ${e.patient_name}`,
      more: `${e.cpt_code}, ${calendarDate(e.service_date)}, ${humanize(e.lifecycle_status)}`,
      act: () => go("entry", { id: e.id }),
    })),
    ...(claims.count > claims.results.length
      ? [{ group: "Claims", text: `All ${claims.count} claims`, act: () => go("billing", {}, { tab: "entries" }, { search: term }) }] : []),
  ];
}

/** @param {string} term */
function useResults(term) {
  const [results, setResults] = useState(/** @type {{term: string, found: Found[], message: string}} */ (
    { term: "", found: [], message: "" }));
  useEffect(() => {
    if (term.length < 2) {
      return setResults({ term, found: [], message: "" });
    }
    const cancel = new AbortController();
    const timer = setTimeout(() => search(term, cancel.signal).then((found) => setResults({ term, found, message: "" }),
      (error) => { cancel.signal.aborted || setResults({ term, found: [], message: asProblem(error).message }); }), debounceTime);
    return () => { clearTimeout(timer); cancel.abort(); };
  }, [term]);
  return results;
}

/** @param {{close: () => void}} props */
export function Find({ close }) {
  const id = useId();
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [term, setTerm] = useState("");
  const [selectedKey, setSelectedKey] = useState(""); // by key: late results do not move the selection
  const here = useMemo(localItems, []); // before this dialog opened over the page
  const answer = useResults(term.trim());
  useEffect(() => {
    box.current?.showModal();
    return () => box.current?.close();
  }, []);
  const localMatches = here.filter((one) => term.trim() === "" || matches(one.text, term.trim()));
  const list = [...answer.found, ...localMatches];
  const chosen = Math.max(0, list.findIndex((one) => keyOf(one) === selectedKey));
  useEffect(() => { document.getElementById(`${id}-${chosen}`)?.scrollIntoView({ block: "nearest" }); }, [chosen]);
  const isLoaded = answer.term === term.trim();
  const isEnterPending = useRef(false); // Enter was pressed before the results arrived, and applies to them
  const act = (/** @type {Found | undefined} */ one) => {
    if (one) {
      close();
      setTimeout(one.act); // after the focus has returned
    }
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && list.length > 0) {
      event.preventDefault();
      setSelectedKey(keyOf(list[(chosen + by + list.length) % list.length]));
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      isEnterPending.current = !isLoaded;
      if (isLoaded) {
        act(list[chosen]);
      }
    }
  };
  useEffect(() => {
    if (isEnterPending.current && isLoaded) {
      isEnterPending.current = false;
      act(list[0]);
    }
  }, [isLoaded]);
  const words = answer.message || (list.length > 0 ? `${list.length} found` : isLoaded ? "Nothing matches." : "Searching");
  return html`<dialog ref=${box} class="find" aria-label="Find a patient, a person, a page or an action" onClose=${close} onCancel=${close}
    onClick=${(event) => event.target === box.current && close()}>
    <div class="find-field"><span aria-hidden="true">⌕</span>
      <input id=${id} type="text" role="combobox" autocomplete="off" spellcheck=${false} aria-label="Find" aria-expanded="true"
        aria-controls=${`${id}-list`} aria-autocomplete="list"
        aria-activedescendant=${list.length > 0 ? `${id}-${chosen}` : null}
        placeholder=${can("manageBilling") ? "Name, MRN, claim, page or action" : "Name, MRN, page or action"} value=${term} autofocus
        onInput=${(event) => { isEnterPending.current = false; setTerm(event.target.value); setSelectedKey(""); }} onKeyDown=${key} />
      <kbd>Esc</kbd></div>
    <ul id=${`${id}-list`} role="listbox" aria-label="Found">${list.map((one, i) => html`
      ${one.group !== list[i - 1]?.group
        && html`<li key=${`${one.group} ${i}`} role="presentation" class="find-group"><bdi>${one.group}</bdi></li>`}
      <li key=${keyOf(one)} id=${`${id}-${i}`} role="option" aria-selected=${i === chosen ? "true" : "false"}
        onPointerMove=${() => i === chosen || setSelectedKey(keyOf(one))} onClick=${() => act(one)}>
        <bdi>${one.text}</bdi>${one.more && html` <small>${one.more}</small>`}
        ${one.key && html`<span class="find-key"><${Keys} of=${one.key} /></span>`}</li>`)}</ul>
    <p class="find-status find-more"><span role="status">${words}</span>
      <span aria-hidden="true"><kbd>↑</kbd> <kbd>↓</kbd> choose, <kbd>Enter</kbd> open</span></p>
  </dialog>`;
}
