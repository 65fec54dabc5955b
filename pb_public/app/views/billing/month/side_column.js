// The side column of the month's end: reasons that block entries, and almost billable patients.
import { go } from "../../../router.js";
import { money, number } from "../../../ui/format.js";
import { classes, html } from "../../../view.js";
import { amountOf, groupsOf, mainReason, mainText, sumOf } from "../blocking_reasons.js";

/** @typedef {import("../blocking_reasons.js").Row} Row */
/** @typedef {import("../../../../../tools/console/contract.d.ts").components["schemas"]["NearPatient"]} Near */

/** rows are of one stage; why is the selected reason.
 *  @param {{rows: Row[], why: string, choose: (why: string) => void}} props */
export function BlockedBy({ rows, why, choose }) {
  const blocked = rows.filter((row) => !row.ready);
  const groups = groupsOf(blocked, mainReason).sort(([, a], [, b]) => sumOf(b, amountOf) - sumOf(a, amountOf));
  return html`<section class="panel" aria-labelledby="what-blocks">
    <h2 id="what-blocks">Blocked by <small>${blocked.length === 0 ? "nothing" : `${number(blocked.length)} ${blocked.length === 1
      ? "entry" : "entries"}, ${money(sumOf(blocked, amountOf))}`}</small></h2>
    <ul>${groups.map(([key, list]) => html`<li key=${key}>
      <button type="button" class=${classes(why === key && "here")} aria-pressed=${why === key ? "true" : "false"}
        onClick=${() => choose(why === key ? "" : key)}>
        <span class="mark warning" aria-hidden="true">◆</span>
        <span><strong>${mainText(key)}</strong><small>${number(list.length)} ${list.length === 1 ? "entry" : "entries"}</small></span>
        <span class="sum">${money(sumOf(list, amountOf))}</span></button></li>`)}</ul>
  </section>`;
}

const short = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" });
/** A date without the year. @param {string} date */
const soon = (date) => short.format(new Date(`${date}T00:00:00Z`));

/** The group of a patient, by the missing amount. @param {Near} one */
function groupOf(one) {
  const missing = one.needed - one.have;
  if (one.unit === "days") {
    return missing <= 2 ? "1 to 2 days short" : "3+ days short";
  }
  const goal = `of ${one.needed}`;
  return missing <= 5 ? `1 to 5 min short ${goal}` : `6+ min short ${goal}`;
}

/** @param {{near: Near[]}} props */
export function AlmostBillable({ near }) {
  const open = near.filter((one) => one.gain > 0 && one.against.length === 0);
  const groups = groupsOf(open, groupOf);
  const gain = (/** @type {Near[]} */ list) => sumOf(list, (one) => one.gain);
  return html`<section class="panel" aria-labelledby="in-reach">
    <h2 id="in-reach">Almost billable <small>${open.length === 0 ? "none" : money(gain(open))}</small></h2>
    <ul>${groups.map(([name, list]) => html`<li key=${name}><button type="button" 
      onClick=${() => go("billing", {}, { tab: "near", missing: list[0].unit })}>
      <span class="mark" aria-hidden="true">○</span>
      <span><strong>${name}</strong><small>${number(list.length)} ${list.length === 1 ? "patient"
        : "patients"}, by ${soon(list.map((one) => one.until).sort()[0])}</small></span>
      <span class="sum">${money(gain(list))}</span></button></li>`)}</ul>
  </section>`;
}
