// The open causes of a patient, one row each: count, values with times, and assignee; and open escalations.
import { canAcknowledge } from "../../permissions.js";
import { colleagueInSentence } from "../../colleagues.js";
import { go } from "../../router.js";
import { ago, humanize } from "../../ui/format.js";
import { kindNames } from "../../ui/vitals.js";
import { classes, html } from "../../view.js";
import { acknowledge, takeableEscalation, takeEscalation } from "./actions.js";
import { timeText, stateLabels } from "./labels.js";

/** @typedef {import("../alerts/dialogs.js").Alert} Alert */
/** @typedef {{key: string, level: string, type: string, alerts: Alert[], open: Alert[]}} Cause */

const urgency = ["critical", "warning", "no_data", "normal"];

/** Groups alerts of one type and level as one cause, most severe first. @param {Alert[]} alerts @returns {Cause[]} */
export function causesOf(alerts) {
  /** @type {Map<string, Cause>} */
  const causes = new Map();
  for (const alert of alerts) {
    const key = `${alert.level} ${alert.type}`;
    const cause = causes.get(key) ?? { key, level: alert.level, type: alert.type, alerts: [], open: [] };
    causes.set(key, cause);
    cause.alerts.push(alert);
    if (!alert.acknowledged) {
      cause.open.push(alert);
    }
  }
  return [...causes.values()].sort((a, b) => Number(b.open.length > 0) - Number(a.open.length > 0)
    || urgency.indexOf(a.level) - urgency.indexOf(b.level));
}

/** The unacknowledged alerts, or all if none are unacknowledged. @param {Cause} cause */
const shown = (cause) => (cause.open.length > 0 ? cause.open : cause.alerts);
const many = (/** @type {Cause} */ cause) => shown(cause).length;
const shownValues = 3; // number of values listed, newest first

/** The number of further alerts. @param {Cause} cause */
function moreText(cause) {
  const older = many(cause) - shownValues;
  const answered = cause.alerts.length - many(cause);
  return [older > 0 && ` and ${older} earlier`, answered > 0 && `; ${answered} acknowledged`].filter(Boolean).join("");
}

const value = (/** @type {Alert} */ alert) => (alert.value === null ? "" : `${Math.round(alert.value * 10) / 10} `);

/**
 * @param {{causes: Cause[], escalations: any[], loading: boolean, row: import("./order.js").Row, again: () => void,
 *   did: (row: any, act: () => Promise<any>) => Promise<boolean>}} props
 */
export function Causes({ causes, escalations, loading, row, did, again }) {
  const open = causes.reduce((sum, cause) => sum + cause.open.length, 0);
  const count = causes.reduce((sum, cause) => sum + cause.alerts.length, 0);
  const title = loading ? "Alerts" : count === 0 ? "No open alerts"
    : `Alerts: ${[open > 0 && `${open} unacknowledged`, count > open && `${count - open} acknowledged`].filter(Boolean).join(", ")}`;
  const run = async (/** @type {() => Promise<any>} */ act) => { if (await did(row, act)) { again(); } };
  const next = takeableEscalation(escalations);
  return html`<section class="causes" aria-busy=${loading ? "true" : "false"}><h3>${title}</h3><ul>
    ${causes.map((cause) => html`<li key=${cause.key} class=${cause.level}><span class="shape"
      aria-hidden="true">${(stateLabels[cause.level] ?? stateLabels.no_data)[0]}</span>
      <div><p><b>${kindNames[cause.type] ?? humanize(cause.type)}</b>${many(cause) > 1 && html` <span class="times">×${many(cause)}</span>`}
        ${cause.open.length === 0 && html` <small>acknowledged by ${colleagueInSentence(cause.alerts[0].acknowledged_by)}</small>`}</p>
        <p class="hint">${cause.alerts[0].message ?? ""}</p>
        <p class="hint">${shown(cause).slice(0, shownValues).map((alert) =>
          `${value(alert)}${timeText(alert.created_at)}`).join(" · ")}${moreText(cause)}</p></div>
      ${cause.open.some(canAcknowledge) && html`<button aria-label=${`Acknowledge: ${kindNames[cause.type] ?? humanize(cause.type)}`}
        onClick=${() => run(() => acknowledge(cause.open, "", again))}>Acknowledge</button>`}</li>`)}
    ${escalations.map((e) => html`<li key=${`e${e.id}`} class=${classes("escalation", e.priority)}><span class="shape"
      aria-hidden="true">↗</span>
      <div><p><b>${humanize(e.priority)} escalation</b> ${e.assigned_to
        ? `to ${colleagueInSentence(e.assigned_to, e.assigned_name)}` : "not assigned"}</p>
        <p class="hint">${e.status === "in_progress" ? "In progress" : "Not taken yet"} · opened ${ago(e.created_at)}${e.reason
          ? ` · ${e.reason}` : ""}</p></div>
      ${e === next ? html`<button aria-label=${`Take the ${e.priority} escalation`}
        onClick=${() => run(() => takeEscalation(e))}>Take <kbd aria-hidden="true">T</kbd>
        </button>` : html`<button class="quiet" onClick=${() => go("escalations")}>Open</button>`}</li>`)}
  </ul></section>`;
}
