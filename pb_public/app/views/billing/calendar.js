// A patient's month day by day: days with data as dots that can be counted, minutes beneath, and how far the periods have come.
import { get } from "../../api.js";
import { calendarDate, number } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { daysAgo } from "../../ui/when.js";
import { classes, html } from "../../view.js";

/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["BillingCalendar"]} Month */

const week = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"];

/** @param {{id: string, month: string, turn: number}} props */
export function Calendar({ id, month, turn }) {
  const days = useLoad((signal) => get(`billing/calendar/${id}/`, { month }, signal), [id, month, turn]);
  return html`<${Loaded} from=${days}>${(/** @type {Month} */ data) => html`<div class="calendar">
    <div role="img" aria-label=${`${number(data.days.filter((one) => one.data).length)} days with data, ${number(data.days.reduce((sum, one) => sum + one.minutes, 0))} minutes in this month`}>
      <div class="days" aria-hidden="true">${week.map((name) => html`<span key=${name} class="week">${name}</span>`)}
        ${data.days.map((one, i) => html`<span key=${one.day} style=${i === 0 ? { gridColumnStart: ((new Date(`${one.day}T00:00:00Z`).getUTCDay() + 6) % 7) + 1 } : null}
          class=${classes("day", one.data && "data", one.day > daysAgo(0) && "ahead")} title=${`${calendarDate(one.day)}: ${one.data ? "data" : "no data"}${one.minutes ? `, ${one.minutes} min` : ""}`}>
          ${Number(one.day.slice(8))}${one.minutes > 0 && html`<small>${one.minutes} m</small>`}</span>`)}</div></div>
    <ul>${data.periods.map((one) => html`<li key=${one.period_start}><strong>${number(one.days)} of ${number(one.days_needed)} days</strong> ${calendarDate(one.period_start)} – ${calendarDate(one.period_end)}
      ${one.days < one.days_needed && one.period_end >= daysAgo(0) && html`<span class="two">${number(one.days_needed - one.days)} to go by ${calendarDate(one.period_end)}</span>`}
      ${one.days >= one.days_needed && html`<span class="two"><span class="mark good" aria-hidden="true">✓</span> reached</span>`}</li>`)}
      <li class="soft">● a day with data of a device. Minutes are those that count. Days of time by the practice’s zone, ${data.time_zone}</li></ul>
  </div>`}</${Loaded}>`;
}
