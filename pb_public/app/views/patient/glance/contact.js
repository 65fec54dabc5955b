// The patient's contact details, care team, and last notes.
import { colleague } from "../../../colleagues.js";
import { get } from "../../../api.js";
import { can } from "../../../permissions.js";
import { updateQuery } from "../../../router.js";
import { clock, dateTime } from "../../../ui/format.js";
import { Loaded, useLoad } from "../../../ui/states.js";
import { zoneShort } from "../../../ui/time.js";
import { html, useEffect, useState } from "../../../view.js";
import { telephone } from "../actions.js";

/** The patient's local time, updated each minute. @param {{zone: string | undefined}} props */
function LocalTime({ zone }) {
  const [now, setNow] = useState(() => new Date().toISOString());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date().toISOString()), 20_000);
    return () => clearInterval(timer);
  }, []);
  return html`<small class="soft">${clock(now, zone)} local time, ${zoneShort(zone)}</small>`;
}

/** @param {{patient: any, zone: string | undefined, acts: import("../actions.js").Acts}} props */
export function Contact({ patient: p, zone, acts }) {
  const team = useLoad((signal) => get(`patients/${p.id}/care-team/`, {}, signal), [p.id]);
  const hidden = p.redacted_fields.includes("phone");
  return html`<section class="card contact" aria-labelledby="contact"><div class="heading"><h2 id="contact">Contact</h2><${LocalTime}
    zone=${zone} /></div>
    <p class="phone">${hidden ? "Not for your role" : p.phone ? html`<a href=${telephone(p.phone)} onClick=${acts.called}>${p.phone}</a>`
      : "No phone on record"}
      ${acts.running && html`<span class="badge good"><span aria-hidden="true">●</span> Timer running</span>`}
      ${!acts.running && p.phone && acts.call && html`<button class="no-print" aria-keyshortcuts="C"
        title="Call and start the timer" onClick=${acts.call}>Call <kbd aria-hidden="true">C</kbd></button>`}</p>
    ${p.email && html`<p class="soft">${p.email}</p>`}
    <${Loaded} from=${team}>${(data) => html`<p class="soft">Team: ${[data.primary_provider_name, ...data.members.map((/** @type {any}
     *  */ m) => m.name)].filter(Boolean).join(", ") || "not assigned"}</p>`}</${Loaded}>
  </section>`;
}

/** Notes of calls and other work, and of alerts, the newest first. @param {{id: string, turn: number, alerts: any[], zone: string |
 *  undefined}} props */
export function LastNotes({ id, turn, alerts, zone }) {
  const time = useLoad((signal) => (can("readTime") ? get("time-entries/", { patient_id: id, page_size: 20 }, signal)
    : Promise.resolve({ results: [] })), [id, turn]);
  return html`<section class="card notes" aria-labelledby="notes"><div class="heading"><h2 id="notes">Last notes</h2>${can("readTime")
    && html`<button class="quiet no-print" onClick=${() => updateQuery({ tab: "time" })}>All</button>`}</div>
    <${Loaded} from=${time}>${(data) => {
      const notes = [...data.results.filter((t) => t.notes).map((t) =>
        ({ key: `t${t.id}`, at: t.started_at, who: t.user_name, about: durationText(t), text: t.notes })), ...alertNotes(alerts)]
        .sort((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, 4);
      return notes.length === 0 ? html`<p class="soft">No notes yet.</p>`
        : html`<ol>${notes.map((note) => html`<li key=${note.key}><small
        class="soft">${[note.who && colleague(note.who), dateTime(note.at, zone), note.about].filter(Boolean).join(", ")}</small>
        <p>${note.text}</p></li>`)}</ol>`;
    }}</${Loaded}>
  </section>`;
}

const durationText = (/** @type {any} */ t) =>
  `${t.activity === "phone_call" ? "call" : t.category.replaceAll("_", " ")}${t.duration_seconds >= 60
    ? `, ${Math.floor(t.duration_seconds / 60)} min` : ""}`;

/** The notes of alerts; one note written into several alerts appears once. @param {any[]} alerts */
function alertNotes(alerts) {
  /** @type {Map<string, any>} */
  const by = new Map();
  for (const alert of alerts) {
    for (const text of [alert.clinical_note, alert.notes].filter(Boolean)) {
      const at = alert.acknowledged_at ?? alert.resolved_at ?? alert.created_at;
      const who = alert.acknowledged_by ?? alert.resolved_by;
      const key = `${who} ${text} ${Math.floor(Date.parse(at) / 600_000)}`;
      const same = by.get(key);
      by.set(key, { key, at, who, text, many: (same?.many ?? 0) + 1 });
    }
  }
  return [...by.values()].map((note) => ({ ...note, about: note.many > 1 ? `for ${note.many} alerts` : "for an alert" }));
}
