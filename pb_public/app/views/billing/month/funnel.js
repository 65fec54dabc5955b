// The month's progress: patients left of the thick line, entries right of it.
import { money, number } from "../../../ui/format.js";
import { classes, html } from "../../../view.js";

/** @typedef {import("../../../../../tools/console/contract.d.ts").components["schemas"]["BillingFunnel"]} FunnelData */

/** @param {string} month YYYY-MM */
export const monthName = (month, /** @type {Intl.DateTimeFormatOptions} */ style = { month: "long", year: "numeric" }) =>
  new Intl.DateTimeFormat(undefined, { ...style, timeZone: "UTC" }).format(new Date(`${month}-01T00:00:00Z`));

/** @param {FunnelData} funnel @param {string} state */
const stage = (funnel, state) => funnel.entries.find((one) => one.lifecycle_status === state) ?? { claims: 0, amount: 0, paid: 0 };

/** at is the stage that the sheet shows.
 *  @param {{funnel: FunnelData, blocked: number | null, at: string, choose: (stage: string) => void}} props */
export function Funnel({ funnel, blocked, at, choose }) {
  const { patients, month_before: before } = funnel;
  const of = patients.enrolled || 1;
  const waiting = stage(funnel, "pending_review");
  const reviewed = stage(funnel, "reviewed");
  const sent = stage(funnel, "submitted");
  const paid = stage(funnel, "paid");
  const all = funnel.entries.filter((one) => one.lifecycle_status !== "voided").reduce((sum, one) => sum + one.claims, 0) || 1;
  const last = before.claims > 0 ? `${monthName(before.month, { month: "short" })}: ${money(before.paid)} of ${money(before.expected)}`
    : "entries";
  const amount = (/** @type {{amount: number}} */ one) => money(one.amount);
  return html`<ol class="funnel" aria-label="Progress of the month">
    <${Stage} name="Enrolled" count=${patients.enrolled}
      about=${`patients, ${number(patients.enrolled - patients.eligible)} not complete`} share=${1} />
    <${Stage} name="With readings" count=${patients.with_data} share=${patients.with_data / of}
      about=${`${number(patients.days_16_or_more)} with 16 days, ${number(patients.days_2_to_15)}\u00a0with\u00a02\u2060–\u206015`} />
    <${Stage} name="20 min of contact" count=${patients.minutes_20_or_more} share=${patients.minutes_20_or_more / of}
      about=${`patients, ${number(patients.minutes_10_to_19)} more\u00a0with\u00a010\u2060–\u206019`} />
    <${Stage} name="To review" count=${waiting.claims} share=${waiting.claims / all} entries here=${at === "pending_review"}
      open=${() => choose("pending_review")}
      about=${`entries, ${amount(waiting)}${blocked ? `, ${number(blocked)}\u00a0blocked` : ""}`} />
    <${Stage} name="Reviewed" count=${reviewed.claims} share=${reviewed.claims / all} here=${at === "reviewed"}
      open=${() => choose("reviewed")} about=${`entries, ${amount(reviewed)}`} />
    <${Stage} name="Submitted" count=${sent.claims} share=${sent.claims / all} open=${() => choose("submitted")}
      about=${`entries, ${amount(sent)}`} />
    <${Stage} name="Paid" count=${paid.claims} share=${paid.claims / all} open=${() => choose("paid")} about=${paid.claims > 0
      ? `entries, ${money(paid.paid)}` : last} />
  </ol>`;
}

/** @param {{name: string, count: number, about: string, share: number, entries?: boolean, here?: boolean, open?: () => void}} props */
function Stage({ name, count, about, share, entries, here, open }) {
  const content = html`<span class="name">${name}</span><strong>${number(count)}</strong><span class="about">${about}</span>
    <span class="gauge" aria-hidden="true"><span style=${{ width: `${Math.min(100, share * 100)}%` }}></span></span>`;
  return html`<li class=${classes(entries && "line", here && "here")}>${open
    ? html`<button type="button" aria-current=${here ? "true" : null}
      onClick=${open}>${content}</button>` : html`<div>${content}</div>`}</li>`;
}
