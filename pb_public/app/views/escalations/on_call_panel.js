// Who is on call now and in the next days, gaps in the rota, and the practice's deadlines.
import { get } from "../../api.js";
import { can } from "../../permissions.js";
import { go } from "../../router.js";
import { dateTime } from "../../ui/format.js";
import { useLoad } from "../../ui/states.js";
import { zoneShort } from "../../ui/time.js";
import { html } from "../../view.js";
import { initials, durationText } from "../alerts/labels.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["OnCallTurns"]} Turns */

/** @param {{deadlines: any}} props */
export function OnCallPanel({ deadlines }) {
  const turns = useLoad((signal) => get("on-call/turns/", { days: 7 }, signal), []);
  const data = /** @type {Turns | null} */ (turns.data);
  return html`<aside class="duty" aria-label="On call">
    ${data && html`<${Now} data=${data} /><${Gaps} data=${data} /><${Rota} data=${data} />`}
    ${deadlines && html`<${Deadlines} of=${deadlines} />`}
  </aside>`;
}

/** @param {{data: Turns}} props */
function Now({ data: { turns, time_zone } }) {
  const [now, then] = turns;
  return html`<section class="card"><div class="heading"><h2>On call now</h2><small class="soft">
    ${dateTime(new Date().toISOString(), time_zone)} ${zoneShort(time_zone)}</small></div>
    ${now?.name ? html`<p class="person"><span class="face" aria-hidden="true">${initials(now.name)}</span><span><strong>${now.name}
      </strong>
      <small>until ${dateTime(now.ends_at, time_zone)}${then && `, then ${then.name ?? "no one"}`}</small></span></p>`
        : html`<p><strong>No one is on call.</strong></p>`}</section>`;
}

/** The gaps of the next week. An empty rota is one gap. @param {{data: Turns}} props */
export function Gaps({ data: { turns, time_zone } }) {
  const gaps = turns.filter((turn) => turn.user_id === null);
  if (gaps.length === 0) {
    return null;
  }
  const whole = gaps.length === turns.length;
  const [first] = gaps;
  return html`<section class="card gap" aria-label="Gap in the rota"><h2><span
    aria-hidden="true">◆</span> ${whole ? "No one is on call all week" : `No one on call, ${dateTime(first.starts_at,
      time_zone)} to ${dateTime(first.ends_at, time_zone)}`}</h2>
    <p>Untaken stat escalations would go directly to the managers.${gaps.length > 1 && !whole
      && ` ${gaps.length - 1} more ${gaps.length === 2 ? "gap" : "gaps"} this week.`}</p>
    ${can("setOnCall") && html`<button class="main" onClick=${() => go("on-call",
      { fill: { starts_at: first.starts_at, ends_at: first.ends_at } })}>Fill the gap</button>`}</section>`;
}

const hours = [0, 6, 12, 18, 24];

/** The next days in the rota's time zone, gaps hatched.
 *  @param {{data: Turns, edit?: boolean}} props edit links to the page where it is set */
export function Rota({ data: { turns, time_zone }, edit = true }) {
  const days = [...new Set(turns.flatMap(({ starts_at, ends_at }) => daysOf(starts_at, ends_at, time_zone)))].slice(0, 7);
  const people = [...new Set(turns.map(({ user_id }) => user_id).filter((id) => id !== null))];
  return html`<section class="card rota"><div class="heading"><h2>Rota, next days</h2>${edit && html`<button
    onClick=${() => go("on-call")}>${can("setOnCall") ? "Edit" : "Open"}</button>`}</div>
    <div class="hours" aria-hidden="true">${hours.map((hour) => html`<span key=${hour}>${hour}</span>`)}</div>
    <ol>${days.map((day) => html`<li key=${day}><span class="day">${dayName(day)}</span><span class="bar">
      ${turns.map((turn) => ({ turn, part: partOf(turn, day, time_zone) })).filter(({ part }) => part.width > 0.3)
      .map(({ turn, part }) => html`<span key=${turn.starts_at} class=${`turn ${turn.user_id === null ? "gap"
        : `p${people.indexOf(turn.user_id) % 3}`} ${turn.override ? "override" : ""}`}
        style=${{ left: `${part.left}%`, width: `${part.width}%` }} title=${`${turn.name ?? "No one"}, ${dateTime(turn.starts_at,
          time_zone)} to ${dateTime(turn.ends_at, time_zone)}`}>${turn.name?.split(" ").at(-1) ?? "◆ Gap"}</span>`)}</span></li>`)}</ol>
    <small class="soft">All times ${zoneShort(time_zone)}. Outlined: an override of the weekly schedule.</small></section>`;
}

const dayIn = (/** @type {string | number} */ at, /** @type {string} */ zone) => new Intl.DateTimeFormat("en-CA",
  { timeZone: zone }).format(new Date(at));

/** @param {string} from @param {string} to @param {string} zone */
function daysOf(from, to, zone) {
  const days = [];
  for (let at = Date.parse(from); at < Date.parse(to); at += 12 * 3_600_000) {
    days.push(dayIn(at, zone));
  }
  return days;
}

/**
 * The position of a turn in a day, in percent of the local time.
 * @param {{starts_at: string, ends_at: string}} turn
 * @param {string} day
 * @param {string} zone
 */
function partOf(turn, day, zone) {
  const place = (/** @type {string} */ at) => {
    const on = dayIn(at, zone);
    return on < day ? 0 : on > day ? 100 : wall(at, zone) / 14.4;
  };
  const left = place(turn.starts_at);
  return { left, width: place(turn.ends_at) - left };
}

/** Minutes since midnight. @param {string} at @param {string} zone */
function wall(at, zone) {
  const [hour, minute] = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit",
    hourCycle: "h23" }).format(new Date(at)).split(":").map(Number);
  return hour * 60 + minute;
}

const dayName = (/** @type {string} */ day) => new Intl.DateTimeFormat(undefined,
  { weekday: "short", day: "numeric", timeZone: "UTC" }).format(new Date(`${day}T00:00:00Z`));

/** @param {{of: any}} props */
const Deadlines = ({ of }) => html`<section class="card deadlines"><div class="heading"><h2>Deadlines</h2><small
  class="soft">practice settings</small></div>
  <table><thead><tr><th><span class="unseen">Urgency</span></th><th scope="col">On call</th><th scope="col">Managers</th><th
    scope="col">All</th></tr></thead><tbody>
    ${[["stat", "▲", "Stat"], ["urgent", "◆", "Urgent"], ["routine", "○", "Routine"]].map(([code, sign, name]) => html`<tr key=${code}>
      <th scope="row"><span aria-hidden="true">${sign}</span> ${name}</th>
      ${["on_call_seconds", "managers_seconds", "everyone_seconds"].map((step) => html`<td
        key=${step}>${durationText(of[code][step] * 1000)}
        </td>`)}</tr>`)}</tbody></table></section>`;
