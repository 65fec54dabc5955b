// A patient's month by day: days with data, minutes, and the progress of the billing periods.
import { get } from "../../api.js";
import { calendarDate, number } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { daysAgo } from "../../ui/time.js";
import { classes, html } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["BillingCalendar"]} Month */

const week = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"];

/** @param {{id: string, month: string, turn: number}} props */
export function Calendar({ id, month, turn }) {
  const days = useLoad((signal) => get(`billing/calendar/${id}/`, { month }, signal), [id, month, turn]);
  return html`<${Loaded} from=${days}>${(/** @type {Month} */ data) => html`<div class="bill-month">
    <${Days} days=${data.days} />
    <ul>${data.periods.map((one) => html`<${Period} key=${one.period_start} of=${one} />`)}
      <li class="soft">${`● Day with device data. Minutes are billable minutes in the practice’s time zone, ${data.time_zone}.`}</li>
        </ul>
  </div>`}</${Loaded}>`;
}

/** @param {{days: Month["days"]}} props */
function Days({ days }) {
  const data = days.filter((one) => one.data).length;
  const minutes = days.reduce((sum, one) => sum + one.minutes, 0);
  return html`<div role="img" aria-label=${`${number(data)} days with data, ${number(minutes)} minutes in this month`}>
    <div class="days" aria-hidden="true">${week.map((name) => html`<span key=${name} class="week">${name}</span>`)}
      ${days.map((one, i) => html`<span key=${one.day} class=${classes("day", one.data && "data", one.day > daysAgo(0) && "ahead")}
        style=${i === 0 ? { gridColumnStart: column(one.day) } : null} title=${titleOf(one)}>
        ${Number(one.day.slice(8))}${one.minutes > 0 && html`<small>${one.minutes} m</small>`}</span>`)}</div></div>`;
}

/** The grid column of a day; weeks begin on Monday. @param {string} date */
const column = (date) => ((new Date(`${date}T00:00:00Z`).getUTCDay() + 6) % 7) + 1;

/** @param {Month["days"][number]} one */
const titleOf = (one) => `${calendarDate(one.day)}: ${one.data ? "data" : "no data"}${one.minutes ? `, ${one.minutes} min` : ""}`;

/** @param {{of: Month["periods"][number]}} props */
const Period = ({ of }) => html`<li><strong>${number(of.days)} of ${number(of.days_needed)} days</strong>
  ${` ${calendarDate(of.period_start)} – ${calendarDate(of.period_end)}`}
  ${of.days < of.days_needed && of.period_end >= daysAgo(0)
    && html`<span class="two">${number(of.days_needed - of.days)} more by ${calendarDate(of.period_end)}</span>`}
  ${of.days >= of.days_needed && html`<span class="two"><span class="mark good" aria-hidden="true">✓</span> met</span>`}</li>`;
