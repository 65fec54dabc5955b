// The days with readings of a billing period, as billing counts them.
import { get } from "../../../api.js";
import { calendarDate } from "../../../ui/format.js";
import { Loaded, useLoad } from "../../../ui/states.js";
import { classes, html, useState } from "../../../view.js";

const step = 86_400_000;
const at = (/** @type {string} */ date) => Date.parse(`${date}T00:00:00Z`);
const dated = (/** @type {number} */ time) => new Date(time).toISOString().slice(0, 10);
const shortDate = (/** @type {string} */ date) => new Intl.DateTimeFormat(undefined,
  { month: "short", day: "numeric", timeZone: "UTC" }).format(at(date));
const month = (/** @type {string} */ date) => new Intl.DateTimeFormat(undefined, { month: "short", timeZone: "UTC" }).format(at(date));
const weekday = (/** @type {string} */ date) => new Intl.DateTimeFormat(undefined, { weekday: "long", timeZone: "UTC" }).format(at(date));
const weekdays = [0, 1, 2, 3, 4, 5, 6].map((n) => new Date(Date.UTC(2024, 0, 1 + n))) // a Monday
  .map((day) => ({ long: new Intl.DateTimeFormat(undefined, { weekday: "long", timeZone: "UTC" }).format(day),
    short: new Intl.DateTimeFormat(undefined, { weekday: "narrow", timeZone: "UTC" }).format(day) }));

/** @param {{id: string, turn: number, stay?: string}} props stay in a hospital, which explains missing days */
export function DataDays({ id, turn, stay }) {
  const [date, setDate] = useState("");
  const from = useLoad((signal) => get(`patients/${id}/data-days/`, { date }, signal), [id, turn, date]);
  return html`<section class="card days" aria-labelledby="days"><${Loaded} from=${from}>${(data) => html`
    <div class="heading"><h2 id="days">Days with readings</h2>
      <span class="choices no-print"><button class="quiet" aria-label="Previous period" onClick=${() => setDate(data.earlier)}>‹</button>
        <button class="quiet" aria-label="Next period" disabled=${data.later === null}
          onClick=${() => setDate(data.later ?? "")}>›</button></span></div>
    <${Count} of=${data} />
    <${Calendar} of=${data} />
    <p class="soft">${[stay, ...notes(data)].filter(Boolean).join(" ")}</p>`}</${Loaded}></section>`;
}

/** The due date of the missing days: a weekday if within a week. @param {any} data */
function due(data) {
  const days = Math.round((at(data.last_day) - at(data.today)) / step);
  return days === 0 ? "today" : days === 1 ? "tomorrow" : days < 7 ? weekday(data.last_day) : shortDate(data.last_day);
}

/** @param {{of: any}} props */
function Count({ of: data }) {
  const enough = data.days_to_go === 0;
  const possible = data.reachable.includes("99454");
  return html`<p class="count"><strong>${data.days.length}</strong> <span
    class="soft">days (${data.days_needed} needed), ${shortDate(data.first_day)} to ${shortDate(data.last_day)}</span>
    ${data.billing_period && (enough ? html`<span class="badge good"><span aria-hidden="true">✓</span> 99454 met</span>`
      : data.days_left === 0 ? html`<span class="badge">${data.days_to_go} short</span>`
        : possible ? html`<span class="badge warning">${data.days_to_go} more by ${due(data)}</span>`
          : html`<span class="badge">${data.days_to_go} more needed, too few days left</span>`)}</p>`;
}

/** The codes that are met, and those that can still be met. @param {any} data */
const codesMet = (data) => [data.days_to_go > 0 && data.reached && `${data.reached} met`, data.reachable.length > 0
  && (data.reachable.join() === "99454" ? `${data.days_to_go} more days for 99454` : `${data.reachable.join(" and ")} still possible`)]
  .filter(Boolean).join("; ");

/** @param {any} data */
const notes = (data) => [
  !data.billing_period && "No billing period covers these days: no device is assigned, or there are no readings yet.",
  data.billing_period && codesMet(data) && `${codesMet(data)}.`,
  data.days_without_consent.length > 0 && `${data.days_without_consent.length} without consent do not count (dashed).`,
  data.days_typed.length > 0 && `${data.days_typed.length} entered manually do not count (dotted).`,
].filter(Boolean);

/** @param {{of: any}} props */
function Calendar({ of: data }) {
  const first = at(data.first_day);
  const start = first - ((new Date(first).getUTCDay() + 6) % 7) * step;
  const weeks = Math.ceil((at(data.last_day) + step - start) / (7 * step));
  const has = { counted: new Set(data.days), unconsented: new Set(data.days_without_consent), typed: new Set(data.days_typed) };
  const stateOf = (/** @type {string} */ date) => (date < data.first_day || date > data.last_day ? "outside" : has.counted.has(date)
    ? "counted" : has.unconsented.has(date) ? "unconsented"
    : has.typed.has(date) ? "typed" : date > data.today ? "coming" : "none");
  const words = { counted: "with readings", unconsented: "with readings, without consent", typed: "entered manually only",
    coming: "to come", none: "no reading", outside: "" };
  return html`<table class="calendar"><caption
    class="unseen">Days with readings from ${calendarDate(data.first_day)} to ${calendarDate(data.last_day)}: ${data.days.length} count
      </caption>
    <thead><tr>${weekdays.map(({ long, short }) => html`<th key=${long} scope="col"><abbr
      title=${long}>${short}</abbr></th>`)}</tr></thead>
    <tbody>${Array.from({ length: weeks }, (_, week) => html`<tr key=${week}>${Array.from({ length: 7 }, (_, n) => {
      const date = dated(start + (week * 7 + n) * step);
      const state = stateOf(date);
      const named = state !== "outside" && (date === data.first_day || date.endsWith("-01"));
      return html`<td key=${date} class=${classes(state, date === data.today && "today")} aria-current=${date === data.today ? "date"
        : null}>${state !== "outside" && html`
        ${named && html`<small aria-hidden="true">${month(date)}</small>`}<span>${Number(date.slice(8))}</span><span
          class="unseen"> ${month(date)}, ${words[state]}</span>`}</td>`;
    })}</tr>`)}</tbody></table>`;
}
