// Find: patients, people, pages and what can be done here, with the keyboard from anywhere.
import { get } from "../api.js";
import { can, reach, roleNames } from "../can.js";
import { actingKeys } from "../keys.js";
import { go } from "../router.js";
import { sectionsOf } from "../sections.js";
import { signOff } from "../sign_on.js";
import { startTimer } from "../timer.js";
import { Keys } from "./key_list.js";
import { asProblem } from "./states.js";
import { html, useEffect, useId, useMemo, useRef, useState } from "../view.js";

/** @typedef {{group: string, text: string, more?: string, key?: string, act: () => void}} Found */

const settle = 200; // milliseconds without a key before the service is asked

/** Whether all words stand in the text. @param {string} text @param {string} term */
const fits = (text, term) => term.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));

/** What the console itself has: pages and actions. @returns {Found[]} */
const ofHere = () => [
  ...sectionsOf().map((s) => ({ group: "Pages", text: s.name, key: `g ${s.key}`, act: () => go(s.view) })),
  ...(can("readClinical") ? [{ group: "Pages", text: "On call", act: () => go("on-call") }] : []),
  ...actingKeys().filter(({ key }) => !key.startsWith("g ")).map(({ key, does, act }) => ({ group: "Actions here", text: does, key, act })),
  { group: "Actions", text: "Sign off", act: () => { void signOff(); } },
];

/** What the service finds. @param {string} term @param {AbortSignal} signal @returns {Promise<Found[]>} */
async function ask(term, signal) {
  const [patients, people] = await Promise.all([
    reach("read_patients") === "all" ? get("patients/", { search: term, page_size: 6 }, signal) : { results: [], count: 0 },
    can("readStaff") ? get("users/staff/", { search: term, page_size: 4 }, signal) : { results: [] },
  ]);
  const [first] = patients.results;
  const more = patients.count - patients.results.length;
  return [
    ...patients.results.map((/** @type {any} */ p) => ({
      group: "Patients", text: `${p.first_name} ${p.last_name}`, more: [p.mrn, p.status === "archived" && "archived"].filter(Boolean).join(", "), act: () => go("patient", { id: p.id }),
    })),
    ...(patients.results.length === 1 && can("logTime") ? [
      { group: `Actions on ${first.first_name} ${first.last_name}`, text: "Start the timer for a call", act: () => { go("patient", { id: first.id }); void startTimer(first.id, { call: true }); } },
      { group: `Actions on ${first.first_name} ${first.last_name}`, text: "Open their alerts", act: () => go("patient", { id: first.id, tab: "alerts" }) },
    ] : []),
    ...(more > 0 ? [{ group: "Patients", text: `All that match, ${patients.count}`, act: () => go("patients", {}, {}, { search: term }) }] : []),
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
  const [at, step] = useState(0);
  const here = useMemo(ofHere, []); // as it was before this stood over the page
  const answer = useAnswer(term.trim());
  useEffect(() => {
    box.current?.showModal();
    return () => box.current?.close();
  }, []);
  useEffect(() => { document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" }); }, [at]);
  const own = here.filter((one) => term.trim() === "" || fits(one.text, term.trim()));
  const list = [...answer.found, ...own];
  const chosen = Math.min(at, list.length - 1);
  const act = (/** @type {Found | undefined} */ one) => {
    if (one) {
      close();
      setTimeout(one.act); // once the focus is back where it was
    }
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && list.length > 0) {
      event.preventDefault();
      step((chosen + by + list.length) % list.length);
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      act(list[chosen]);
    }
  };
  const settled = answer.term === term.trim();
  const words = answer.said || (list.length > 0 ? `${list.length} found` : settled ? "Nothing matches." : "Looking");
  return html`<dialog ref=${box} class="find" aria-label="Find a patient, a person, a page or an action" onClose=${close} onCancel=${close}
    onClick=${(event) => event.target === box.current && close()}>
    <div class="find-field"><span aria-hidden="true">⌕</span>
      <input id=${id} type="text" role="combobox" autocomplete="off" spellcheck=${false} aria-label="Find" aria-expanded="true" aria-controls=${`${id}-list`} aria-autocomplete="list"
        aria-activedescendant=${list.length > 0 ? `${id}-${chosen}` : null} placeholder="Name, MRN, page or action" value=${term} autofocus
        onInput=${(event) => { type(event.target.value); step(0); }} onKeyDown=${key} />
      <kbd>Esc</kbd></div>
    <ul id=${`${id}-list`} role="listbox" aria-label="Found">${list.map((one, i) => html`
      ${one.group !== list[i - 1]?.group && html`<li key=${`${one.group} ${i}`} role="presentation" class="find-group"><bdi>${one.group}</bdi></li>`}
      <li key=${`${one.group} ${one.text} ${one.more}`} id=${`${id}-${i}`} role="option" aria-selected=${i === chosen ? "true" : "false"}
        onPointerMove=${() => i === at || step(i)} onClick=${() => act(one)}>
        <bdi>${one.text}</bdi>${one.more && html` <small>${one.more}</small>`}${one.key && html`<span class="find-key"><${Keys} of=${one.key} /></span>`}</li>`)}</ul>
    <p class="find-said" role="status">${words}</p>
  </dialog>`;
}
