// Find (Ctrl-K): patients, staff, pages and actions, by keyboard from any page.
import { get } from "../api.js";
import { can, reach, roleNames } from "../can.js";
import { actingKeys } from "../keys.js";
import { go } from "../router.js";
import { sectionsOf } from "../sections.js";
import { signOff } from "../sign_on.js";
import { startTimer } from "../timer.js";
import { localOf } from "./when.js";
import { Keys } from "./key_list.js";
import { asProblem } from "./states.js";
import { html, useEffect, useId, useMemo, useRef, useState } from "../view.js";

/** @typedef {{group: string, text: string, more?: string, key?: string, act: () => void}} Found */

const settle = 200; // milliseconds without a key before a request

/** @param {Found} one */
const keyOf = ({ group, text, more = "" }) => `${group} ${text} ${more}`;

/** Whether the text contains all words. @param {string} text @param {string} term */
const fits = (text, term) => term.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));

/** The console's own pages and actions. @returns {Found[]} */
const ofHere = () => [
  ...sectionsOf().map((s) => ({ group: "Pages", text: s.name, key: `g ${s.key}`, act: () => go(s.view) })),
  ...actingKeys().filter(({ key }) => !key.startsWith("g ")).map(({ key, does, act }) =>
    ({ group: "Actions on this page", text: does, key, act })),
  { group: "Actions", text: "Sign out", act: () => { void signOff(); } },
];

/** "67 female · MRN-00000020": distinguishes patients with the same name. @param {any} p */
function about(p) {
  const [year, ...day] = (p.date_of_birth ?? "").split("-");
  const years = year && Number(localOf().slice(0, 4)) - Number(year) - (localOf().slice(5, 10) < day.join("-") ? 1 : 0);
  const who = [years, p.gender !== "unknown" && p.gender].filter(Boolean).join(" ");
  return [who, p.mrn, p.status === "archived" && "archived"].filter(Boolean).join(" · ");
}

/** Actions on the best match, without opening the chart first. @param {any} p @returns {Found[]} */
function actsOn(p) {
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
async function ask(term, signal) {
  const [patients, people] = await Promise.all([
    reach("read_patients") === "all" ? get("patients/", { search: term, page_size: 6 }, signal) : { results: [], count: 0 },
    can("readStaff") ? get("users/staff/", { search: term, page_size: 4 }, signal) : { results: [] },
  ]);
  const more = patients.count - patients.results.length;
  return [
    ...patients.results.map((/** @type {any} */ p) => ({
      group: "Patients", text: `${p.first_name} ${p.last_name}`, more: about(p), act: () => go("patient", { id: p.id }),
    })),
    ...(more > 0
      ? [{ group: "Patients", text: `All ${patients.count} matches`, act: () => go("patients", {}, {}, { search: term }) }] : []),
    ...actsOn(patients.results[0]),
    ...people.results.map((/** @type {any} */ one) => ({
      group: "People", text: one.name, more: `${roleNames[one.role] ?? one.role}, ${one.email}`,
      act: () => (can("readUsers") ? go("operations", {}, { tab: "users" }, { search: one.name }) : location.assign(`mailto:${one.email}`)),
    })),
  ];
}

/** @param {string} term */
function useAnswer(term) {
  const [answer, take] = useState(/** @type {{term: string, found: Found[], said: string}} */ ({ term: "", found: [], said: "" }));
  useEffect(() => {
    if (term.length < 2) {
      return take({ term, found: [], said: "" });
    }
    const cancel = new AbortController();
    const timer = setTimeout(() => ask(term, cancel.signal).then((found) => take({ term, found, said: "" }),
      (error) => { cancel.signal.aborted || take({ term, found: [], said: asProblem(error).message }); }), settle);
    return () => { clearTimeout(timer); cancel.abort(); };
  }, [term]);
  return answer;
}

/** @param {{close: () => void}} props */
export function Find({ close }) {
  const id = useId();
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [term, type] = useState("");
  const [at, step] = useState(""); // by key: late results do not move the selection
  const here = useMemo(ofHere, []); // before this dialog opened over the page
  const answer = useAnswer(term.trim());
  useEffect(() => {
    box.current?.showModal();
    return () => box.current?.close();
  }, []);
  const own = here.filter((one) => term.trim() === "" || fits(one.text, term.trim()));
  const list = [...answer.found, ...own];
  const chosen = Math.max(0, list.findIndex((one) => keyOf(one) === at));
  useEffect(() => { document.getElementById(`${id}-${chosen}`)?.scrollIntoView({ block: "nearest" }); }, [chosen]);
  const settled = answer.term === term.trim();
  const waits = useRef(false); // Enter was pressed before the results arrived, and applies to them
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
      step(keyOf(list[(chosen + by + list.length) % list.length]));
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      waits.current = !settled;
      if (settled) {
        act(list[chosen]);
      }
    }
  };
  useEffect(() => {
    if (waits.current && settled) {
      waits.current = false;
      act(list[0]);
    }
  }, [settled]);
  const words = answer.said || (list.length > 0 ? `${list.length} found` : settled ? "Nothing matches." : "Searching");
  return html`<dialog ref=${box} class="find" aria-label="Find a patient, a person, a page or an action" onClose=${close} onCancel=${close}
    onClick=${(event) => event.target === box.current && close()}>
    <div class="find-field"><span aria-hidden="true">⌕</span>
      <input id=${id} type="text" role="combobox" autocomplete="off" spellcheck=${false} aria-label="Find" aria-expanded="true"
        aria-controls=${`${id}-list`} aria-autocomplete="list"
        aria-activedescendant=${list.length > 0 ? `${id}-${chosen}` : null} placeholder="Name, MRN, page or action" value=${term} autofocus
        onInput=${(event) => { waits.current = false; type(event.target.value); step(""); }} onKeyDown=${key} />
      <kbd>Esc</kbd></div>
    <ul id=${`${id}-list`} role="listbox" aria-label="Found">${list.map((one, i) => html`
      ${one.group !== list[i - 1]?.group
        && html`<li key=${`${one.group} ${i}`} role="presentation" class="find-group"><bdi>${one.group}</bdi></li>`}
      <li key=${keyOf(one)} id=${`${id}-${i}`} role="option" aria-selected=${i === chosen ? "true" : "false"}
        onPointerMove=${() => i === chosen || step(keyOf(one))} onClick=${() => act(one)}>
        <bdi>${one.text}</bdi>${one.more && html` <small>${one.more}</small>`}
        ${one.key && html`<span class="find-key"><${Keys} of=${one.key} /></span>`}</li>`)}</ul>
    <p class="find-said find-more"><span role="status">${words}</span>
      <span aria-hidden="true"><kbd>↑</kbd> <kbd>↓</kbd> choose, <kbd>Enter</kbd> open</span></p>
  </dialog>`;
}
