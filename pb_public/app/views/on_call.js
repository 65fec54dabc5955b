// The on-call rota: weekly shifts in the practice's time zone, overrides, and handing over the current turn.
import { getAll, get, put } from "../api.js";
import { can } from "../permissions.js";
import { colleagueInSentence } from "../colleagues.js";
import { go } from "../router.js";
import { ActionButton, Dialog, Field, Form } from "../ui/form.js";
import { dateTime, humanize } from "../ui/format.js";
import { asProblem, Loaded, useLoad } from "../ui/states.js";
import { toast } from "../ui/toast.js";
import { instantOf, localInput } from "../ui/time.js";
import { html, useEffect, useState } from "../view.js";
import { Gaps, Rota } from "./escalations/on_call_panel.js";

/** @typedef {import("../../../tools/console/contract.d.ts").components["schemas"]["OnCall"]} Rota */
/** @typedef {import("../../../tools/console/contract.d.ts").components["schemas"]["OnCallNow"]} Duty */
/** @typedef {{rota: Rota, duty: Duty, turns: any}} State */

const path = "on-call/";
const weekdays = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const clinicians = ["provider", "nurse", "clinical_manager", "admin"];
const month = 31 * 86_400_000;

/** @param {AbortSignal} [signal] @returns {Promise<State>} */
const read = async (signal) => {
  const [rota, duty, turns] = await Promise.all([get(path, {}, signal), get("on-call/now/", {}, signal),
    get("on-call/turns/", { days: 7 }, signal)]);
  return { rota, duty, turns };
};

/** Changes the current rota on the server, which may differ from the shown one. Overrides that ended over a month ago are dropped.
 *  @param {(rota: Rota) => Partial<Rota>} step */
const change = async (step) => {
  const now = await get(path);
  const { time_zone, shifts, overrides } = { ...now, ...step(now) };
  return put(path, { time_zone, shifts, overrides: overrides.filter((o) => Date.parse(o.ends_at) > Date.now() - month) });
};

const same = (/** @type {any} */ a) => (/** @type {any} */ b) => Object.keys(a).every((name) => a[name] === b[name]);
/** The list without the first equal item. @param {any[]} list @param {any} one */
const without = (list, one) => list.filter((_, i) => i !== list.findIndex(same(one)));

/** @param {Rota} rota @param {number | null} id */
const nameOf = (rota, id) => {
  const person = rota.people.find((p) => p.user_id === id);
  return person ? `${person.name}${person.active ? "" : " (inactive: skipped)"}` : `user ${id}`;
};

/** @param {{fill?: {starts_at: string, ends_at: string}}} props fill is a gap to fill */
export function OnCall({ fill }) {
  const state = useLoad(read, []);
  const may = can("setOnCall");
  const [dialog, setDialog] = useState("");
  useEffect(() => { fill && may && setDialog("override"); }, [fill]); // also when a gap is chosen on this page
  return html`<div class="heading"><h1>On call</h1>
      ${can("readClinical") && html`<button type="button" onClick=${() => go("escalations")}><span
        aria-hidden="true">←</span> Escalations</button>`}</div>
    <${Loaded} from=${state}>${(/** @type {State} */ { rota, duty, turns }) => html`
      <section class="card" aria-labelledby="now"><div class="heading"><h2 id="now">Now</h2>
        ${may && duty.user_id !== null && html`<button class="main" onClick=${() => setDialog("hand-over")}>Hand over</button>`}</div>
        <p>${duty.user_id === null ? "No one is on call." : html`<strong>${nameOf(rota, duty.user_id)}</strong>`}
          ${duty.until && ` ${duty.user_id === null ? "The next turn starts" : "until"} ${dateTime(duty.until)}`}</p>
      </section>
      <div class="duty-week"><${Rota} data=${turns} edit=${false} /><${Gaps} data=${turns} /></div>
      <${Week} rota=${rota} may=${may} add=${() => setDialog("shift")} changed=${state.reload} />
      <${Overrides} rota=${rota} may=${may} add=${() => setDialog("override")} changed=${state.reload} />
      ${may && html`<${ZoneForm} key=${rota.time_zone} zone=${rota.time_zone} changed=${state.reload} />`}
      ${dialog && html`<${Turn} kind=${dialog} duty=${duty} fill=${fill} close=${() => setDialog("")} done=${state.reload} />`}`}
    </${Loaded}>`;
}

/** @param {{rota: Rota, may: boolean, add: () => void, changed: () => void}} props */
const Week = ({ rota, may, add, changed }) => html`<section class="card" aria-labelledby="week">
  <div class="heading"><h2 id="week">Weekly schedule</h2>${may && html`<button onClick=${add}>Add a shift</button>`}</div>
  <p class="soft">All times ${rota.time_zone}${rota.updated_at
    ? `, set ${dateTime(rota.updated_at)} by ${colleagueInSentence(rota.updated_by)}`
    : ""}. A shift with an end at or before its start ends on the next day.</p>
  <dl class="facts week-of-shifts">${weekdays.map((name, weekday) => {
    const shifts = rota.shifts.filter((s) => s.weekday === weekday).sort((a, b) => a.start.localeCompare(b.start));
    return html`<div key=${name}><dt>${name}</dt><dd>${shifts.length === 0 ? "–"
      : html`<ul class="plain-list">${shifts.map((s, i) => html`<li key=${i}>
      <span>${s.start}–${s.end} ${nameOf(rota, s.user_id)}</span>
      ${may && html`<${ActionButton} act=${() => change((now) => ({ shifts: without(now.shifts, s) }))} doneText="Removed." done=${changed}
        aria-label=${`Remove ${name} ${s.start}`}>Remove</${ActionButton}>`}</li>`)}</ul>`}</dd></div>`;
  })}</dl>
</section>`;

/** @param {{rota: Rota, may: boolean, add: () => void, changed: () => void}} props */
function Overrides({ rota, may, add, changed }) {
  const coming = rota.overrides.filter((o) => Date.parse(o.ends_at) > Date.now()).sort((a,
    b) => Date.parse(a.starts_at) - Date.parse(b.starts_at));
  return html`<section class="card" aria-labelledby="overrides">
    <div class="heading"><h2 id="overrides">Overrides</h2>${may && html`<button onClick=${add}>Add an override</button>`}</div>
    ${coming.length === 0 ? html`<p>No overrides.</p>` : html`<ul class="plain-list">${coming.map((o, i) => html`<li key=${i}>
      <span>${dateTime(o.starts_at)} – ${dateTime(o.ends_at)} ${nameOf(rota, o.user_id)}</span>
      ${may && html`<${ActionButton} act=${() => change((now) => ({ overrides: without(now.overrides, o) }))} doneText="Removed."
        done=${changed} aria-label=${`Remove the override from ${dateTime(o.starts_at)}`}>Remove</${ActionButton}>`}</li>`)}</ul>`}
  </section>`;
}

/** @param {{zone: string, changed: () => void}} props */
const ZoneForm = ({ zone, changed }) => html`<details><summary>Time zone of the shifts</summary>
  <${Form} submit="Save" send=${(values) => change(() => ({ time_zone: values.time_zone ?? "" }))}
    done=${() => { toast("Saved."); changed(); }}>${(errors) => html`
    <${Field} label="Time zone" name="time_zone" value=${zone} hint="For example America/New_York" errors=${errors} />`}</${Form}>
</details>`;

/** Several weekdays for a shift in one step. @type {[string, string][]} */
const several = [["0 1 2 3 4", "Monday to Friday"], ["5 6", "Saturday and Sunday"], ["0 1 2 3 4 5 6", "Every day"]];

const titles = { shift: "Add a shift", override: "Add an override", "hand-over": "Hand over until the end of this turn" };

/** @param {{kind: string, duty: Duty, fill?: {starts_at: string, ends_at: string}, close: () => void, done: () => void}} props */
function Turn({ kind, duty, fill, close, done }) {
  const staff = useLoad(() => getAll("users/", { is_active: true }), []);
  const people = (/** @type {any[]} */ users) => users.filter((u) => clinicians.includes(u.role)
    && (kind !== "hand-over" || u.id !== duty.user_id))
    .map((u) => /** @type {[string, string]} */ ([String(u.id), `${u.first_name} ${u.last_name}, ${humanize(u.role).toLowerCase()}`]));
  const send = (/** @type {any} */ v) => saveTurn(kind === "shift" ? "shifts" : "overrides", (now) => {
    const user_id = v.user_id ? Number(v.user_id) : null;
    if (kind === "shift") {
      const made = v.weekday.split(" ").map((/** @type {string} */ day) => ({ weekday: Number(day), start: v.start, end: v.end, user_id }));
      return { shifts: [...now.shifts, ...made] };
    }
    const one = { override: () => ({ starts_at: instantOf(v.starts_at), ends_at: instantOf(v.ends_at), user_id }),
      "hand-over": () => ({ starts_at: new Date().toISOString(), ends_at: duty.until, user_id }) }[kind]?.();
    return { overrides: [...now.overrides, one] };
  });
  return html`<${Dialog} title=${titles[kind]} close=${close}><${Loaded} from=${staff}>${(users) => html`
    <${Form} submit="Save" cancel=${close} send=${send} done=${() => { toast("Saved."); close(); done(); }}>${(errors) => html`
      ${kind === "shift" && html`<${Field} label="Starts on" name="weekday" kind="select" value="0"
        options=${[...weekdays.map((name, i) => [String(i), name]), ...several]} errors=${errors} />
        <div class="fields"><${Field} label="From" name="start" kind="time" value="19:00" errors=${errors} /><${Field} label="To"
          name="end" kind="time" value="07:00" errors=${errors} /></div>`}
      ${kind === "override" && html`<div class="fields"><${Field} label="From" name="starts_at" kind="datetime-local"
        value=${localInput(fill ? new Date(fill.starts_at) : new Date())} errors=${errors} />
        <${Field} label="To" name="ends_at" kind="datetime-local" value=${fill ? localInput(new Date(fill.ends_at)) : ""}
          errors=${errors} /></div>`}
      <${Field} label="Who" name="user_id" kind="select" options=${[["", "Choose"], ...people(users)]} errors=${errors} />`}
    </${Form}>`}</${Loaded}>
  </${Dialog}>`;
}

/**
 * Adds a turn, and maps its errors to the form's fields: the new turn is the last of its list.
 * @param {string} list
 * @param {(now: Rota) => any} step
 */
async function saveTurn(list, step) {
  try {
    return await change(step);
  } catch (error) {
    const problem = asProblem(error);
    for (const [name, messages] of Object.entries(problem.fields)) {
      const [head, , field] = name.split(".");
      if (head === list && field) {
        problem.fields[field] = messages;
      }
    }
    throw problem;
  }
}
