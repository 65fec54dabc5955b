// The alerts and snoozes of a patient.
import { get, post } from "../../api.js";
import { can } from "../../permissions.js";
import { colleagueInSentence } from "../../colleagues.js";
import { ActionButton, Field } from "../../ui/form.js";
import { dateTime } from "../../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { Pages } from "../../ui/table.js";
import { html, useEffect, useState } from "../../view.js";
import { AlertCard, typeName } from "../alerts/card.js";
import { SnoozeDialog } from "../alerts/dialogs.js";

const pageSize = 10;
const shown = /** @type {[string, string][]} */ ([["open", "Open and in progress"], ["active", "Not acknowledged"],
  ["acknowledged", "In progress"], ["", "All"]]);

/** Reloads on changes to the patient, but not at first render. @param {{reload: () => void}} from @param {number} turn */
export function useTurn(from, turn) {
  useEffect(() => {
    if (turn > 0) {
      from.reload();
    }
  }, [turn]);
}

/** @param {{id: string, turn: number, changed: () => void}} props */
export function PatientAlerts({ id, turn, changed }) {
  const [status, setStatus] = useState("open");
  const [page, setPage] = useState(1);
  const list = useLoad((signal) => get("alerts/", { patient_id: id, ...(status === "open" ? { over: false } : { status }), page,
    page_size: pageSize }, signal), [id, status, page]);
  useTurn(list, turn);
  const put = (/** @type {any} */ alert) => {
    list.change((data) => ({ ...data, results: data.results.map((one) => (one.id === alert.id ? { ...one, ...alert } : one)) }));
    changed();
  };
  return html`<section aria-labelledby="alerts">
    <div class="heading"><h2 id="alerts">Alerts</h2>
      <${Field} label="Show" name="status" kind="select" value=${status} options=${shown}
        onChange=${(event) => { setStatus(event.target.value); setPage(1); }} />
    </div>
    <${Loaded} from=${list} empty=${(data) => data.results.length === 0} nothing=${html`<${EmptyState} title="No alerts" />`}>
      ${(data) => html`<ol class="alerts" aria-label="Alerts, newest first">${data.results.map((alert) =>
        html`<${AlertCard} key=${alert.id} alert=${alert} changed=${put} named=${false} />`)}</ol>
        ${data.count > pageSize && html`<${Pages} page=${page} count=${data.count} size=${pageSize} turn=${setPage} />`}`}
    </${Loaded}>
    <${Snoozes} id=${id} />
  </section>`;
}

/** @param {{id: string}} props */
function Snoozes({ id }) {
  const [dialog, setDialog] = useState(false);
  const list = useLoad((signal) => get(`patients/${id}/snoozes/`, { in_force: true, page_size: 50 }, signal), [id]);
  return html`<div class="card no-print">
    <div class="heading"><h3>Snoozed</h3>${can("snooze") && html`<button onClick=${() => setDialog(true)}>Snooze alerts</button>`}</div>
    <${Loaded} from=${list} empty=${(data) => data.results.length === 0} nothing=${html`<p>No alerts are snoozed.</p>`}>
      ${(data) => html`<ul class="plain-list">${data.results.map((snooze) => html`<li key=${snooze.id}>
        <span><strong>${typeName(snooze.type)}</strong>${snooze.include_critical
          && ", including critical,"} until ${dateTime(snooze.ends_at)}, by ${
            colleagueInSentence(snooze.created_by)}: ${snooze.reason}</span>
        ${can("snooze") && html`<${ActionButton} act=${() => post(`patients/${id}/snoozes/${snooze.id}/end/`)} doneText="Ended."
          done=${list.reload} aria-label=${`End the snooze of ${typeName(snooze.type)}`}>End</${ActionButton}>`}
      </li>`)}</ul>`}
    </${Loaded}>
    ${dialog && html`<${SnoozeDialog} patient=${id} close=${() => setDialog(false)} done=${list.reload} />`}
  </div>`;
}
