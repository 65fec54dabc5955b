// A row of the board: one cause of one patient, and its readings when expanded.
import { get } from "../../api.js";
import { colleague } from "../../colleagues.js";
import { go } from "../../router.js";
import { ageText, fullTime } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { classes, html, useState } from "../../view.js";
import { AlertCard } from "./card.js";
import { shortMRN } from "../triage/labels.js";
import { nextStep } from "./escalation_steps.js";
import { Trend } from "./trend.js";
import { causeOf, initials, durationText, measuredAt, since, typeName, valueOf } from "./labels.js";

/** @typedef {import("./held_list.js").Row} Row */

const signs = { critical: "▲", warning: "◆", no_data: "○", normal: "●" };
const levelNames = { critical: "Critical", warning: "Warning", no_data: "No data", normal: "Information" };

/**
 * @param {{row: Row, tab: string, deadlines: any, chosen: boolean, first: boolean, open: boolean, unfold: () => void,
 *   choose: (on: boolean) => void, changed: () => void}} props
 */
export function GroupRow({ row, tab, deadlines, chosen, first, open, unfold, choose, changed }) {
  const what = `${row.patient_name}, ${typeName(row.type)}`;
  return html`<tr class=${classes("cause", row.level, chosen && "chosen", open && "opened", row.gone && "gone")} data-key=${row.key}
    tabindex=${first ? 0 : -1}
      aria-label=${`${levelNames[row.level]}: ${what}, ${row.count} ${row.count === 1 ? "alert" : "alerts"}`}>
      <td class="c0"><input type="checkbox" aria-label=${`Select ${what}`} checked=${chosen} disabled=${row.gone}
        onChange=${(event) => choose(event.target.checked)} /></td>
      <td class="c1"><span class=${classes("sign", row.level)} aria-hidden="true">${signs[row.level]}</span><span class="unseen">
        ${levelNames[row.level]}</span></td>
      <td class="c2"><button class="link name" onClick=${() => go("patient", { id: row.patient_id, tab: "alerts" })}><bdi>
        ${row.patient_name}</bdi></button> <small>${shortMRN(row.mrn)}</small></td>
      <td class="c3" title=${row.latest?.message ?? null}>${causeOf(row)}${row.count > 1
        && html` <strong class="times">×${row.count}</strong>`}${row.critical_count > 0 && row.critical_count < row.count
        && html`<span class="soft">, ${row.critical_count} critical</span>`}</td>
      <td class="c4"><${Value} alert=${row.latest} /></td>
      <td class="c5" title=${fullTime(row.last_at)}>${ageText(row.last_at)}</td>
      <td class="c6" title=${fullTime(row.first_at)}>${row.count > 1 && `since ${since(row.first_at)}`}</td>
      <td class="c7"><${Trend} group=${row} /></td>
      <td class="c8"><${Who} row=${row} deadlines=${deadlines} /></td>
      <td class="c9"><${State} row=${row} tab=${tab} /></td>
      <td class="c10"><button class="quiet fold" aria-expanded=${open ? "true" : "false"} aria-label=${`Readings of ${what}`}
        onClick=${unfold}><span aria-hidden="true">${open ? "▾" : "▸"}</span></button></td>
    </tr>
    ${open && html`<${Readings} row=${row} changed=${changed} />`}`;
}

/** @param {{alert: import("./labels.js").Alert | null}} props */
function Value({ alert }) {
  const value = valueOf(alert);
  return value && html`<strong class=${classes("value", value.held ? "unsure" : alert?.level)}>
    ${value.held && html`<span aria-hidden="true">? </span><span class="unseen">not confirmed: </span>`}${value.value}</strong> <small>
      ${value.unit}</small>`;
}

/** @param {{row: Row, deadlines: any}} props */
function Who({ row, deadlines }) {
  const { escalation, latest } = row;
  if (escalation) {
    const next = nextStep(escalation, deadlines);
    const name = colleague(escalation.assigned_to, escalation.assigned_name);
    if (escalation.taken) {
      return html`<${Face} of=${escalation.assigned_name} /> <span>${name}, working on it</span>`;
    }
    const recipient = next ? next.what.replace("to ", "") : "";
    const when = next ? next.at > Date.now() ? `in ${durationText(next.at - Date.now())}` : "now" : "escalated";
    const by = latest?.acknowledged_by && colleague(latest.acknowledged_by, row.acknowledged_name);
    return html`${by && html`<${Face} of=${row.acknowledged_name} /> ${by}, `}<span class="paged"
      title=${by ? `${recipient} ${when}` : null}>
      <span aria-hidden="true">↗</span> ${by ? when : `${recipient} ${when}`}</span>`;
  }
  if (latest?.acknowledged_by) {
    const name = colleague(latest.acknowledged_by, row.acknowledged_name);
    return html`<${Face} of=${row.acknowledged_name} /> <span>${name}${latest.follow_up_at && `, follow-up ${since(latest.follow_up_at)}`}
      </span>`;
  }
  return html`<span class=${row.level === "critical" ? "unassigned" : "soft"}>No one yet</span>`;
}

/** @param {{of: string | null}} props */
const Face = ({ of }) => of && html`<span class="face" aria-hidden="true">${initials(of)}</span>`;

/** @param {{row: Row, tab: string}} props */
function State({ row, tab }) {
  if (row.gone) {
    return html`<span class="badge">${row.deed === "resolve" ? "● Resolved" : row.deed ? "✓ Acknowledged" : "Closed"}</span>`;
  }
  if (row.latest?.snoozed) {
    return html`<span class="badge"><span aria-hidden="true">☾</span> Snoozed</span>`;
  }
  const done = tab === "mine" || tab === "progress" || row.acknowledged_count === row.count;
  return done ? html`<span class="badge good-soft"><span aria-hidden="true">✓</span> Acknowledged</span>`
    : html`<span class="badge"><span aria-hidden="true">●</span> Active</span>`;
}

const pageSize = 10;

/** @param {{row: Row, changed: () => void}} props */
function Readings({ row, changed }) {
  const [limit, setLimit] = useState(pageSize);
  const status = row.acknowledged_count === row.count ? "acknowledged" : "active";
  const list = useLoad((signal) => get("alerts/", { patient_id: row.patient_id, type: row.type, status, readings: true,
    page_size: limit }, signal), [row.key, status, limit, row.count, row.deed]);
  const put = (/** @type {any} */ alert) => {
    list.change((data) => ({ ...data, results: data.results.map((/** @type {any} */ one) => (one.id === alert.id ? { ...one, ...alert }
      : one)) }));
    changed();
  };
  if (!list.data) {
    return html`<tr class="reading"><td colspan="11"><${Loaded} from=${list}>${() => null}</${Loaded}></td></tr>`;
  }
  const { results, count } = list.data;
  return html`${results.map((/** @type {import("./labels.js").Alert} */ alert) => html`<${Reading} key=${alert.id} alert=${alert}
    changed=${put} />`)}
    ${count > results.length && html`<tr class="reading"><td class="c0"></td><td class="c1"></td><td colspan="9"><button class="link"
      onClick=${() => setLimit(Math.min(limit + 40, 100))}>
      ${count - results.length} more since ${since(row.first_at)}</button></td></tr>`}`;
}

/** @param {{alert: import("./labels.js").Alert, changed: (alert: any) => void}} props */
function Reading({ alert, changed }) {
  const [open, setOpen] = useState(false);
  const device = /** @type {any} */ (alert.reading)?.device_id;
  return html`<tr class="reading">
      <td class="c0"></td><td class="c1"></td><td class="c2">${device ?? ""}</td>
      <td class="c3" title=${alert.message}>${causeOf({ type: alert.type, latest: alert })}${alert.notes
        && html`<span class="note">${alert.notes}</span>`}</td>
      <td class="c4"><span class=${classes("sign", alert.level)} aria-hidden="true">${signs[alert.level]}</span><span class="unseen">
        ${levelNames[alert.level]}: </span> <${Value} alert=${alert} /></td>
      <td class="c5">${ageText(measuredAt(alert))}</td>
      <td class="c6" title=${fullTime(measuredAt(alert))}>${since(measuredAt(alert))}</td>
      <td class="c7"></td>
      <td class="c8">${alert.time_in_doubt ? "Time in doubt" : alert.late ? "Received late" : ""}</td>
      <td class="c9">${alert.status === "active" ? "Active" : "Acknowledged"}</td>
      <td class="c10"><button class="quiet fold" aria-expanded=${open ? "true" : "false"}
        aria-label=${`Details of ${alert.message ?? typeName(alert.type)}`} onClick=${() => setOpen(!open)}><span
          aria-hidden="true">⋯</span>
          </button></td>
    </tr>
    ${open && html`<tr class="reading whole"><td colspan="11"><ol class="alerts"><${AlertCard} alert=${alert} changed=${changed}
      named=${false} /></ol></td></tr>`}`;
}
