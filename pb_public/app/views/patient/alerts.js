// The alerts of a patient, by cause as in the list of all alerts, and the snoozes.
import { get, post } from "../../api.js";
import { can } from "../../permissions.js";
import { colleagueInSentence } from "../../colleagues.js";
import { ActionButton } from "../../ui/form.js";
import { dateTime } from "../../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { html, useEffect, useMemo, useState } from "../../view.js";
import { AlertGroups } from "../alerts.js";
import { Answered } from "../alerts/closed.js";
import { SnoozeDialog } from "../alerts/dialogs.js";
import { typeName } from "../alerts/labels.js";
import { patientTabs, Tabs } from "../alerts/tabs.js";

/** Reloads on changes to the patient, but not at first render. @param {{reload: () => void}} from @param {number} turn */
export function useTurn(from, turn) {
  useEffect(() => {
    if (turn > 0) {
      from.reload();
    }
  }, [turn]);
}

/** @param {{id: string}} props */
export function PatientAlerts({ id }) {
  const [{ show, page }, setShown] = useState({ show: "all", page: 1 });
  const [counts, setCounts] = useState(/** @type {Record<string, number> | null} */ (null));
  const filters = useMemo(() => ({ patient_id: id }), [id]);
  const turn = (/** @type {number} */ n) => setShown({ show, page: n });
  return html`<section aria-labelledby="alerts">
    <div class="heading"><h2 id="alerts">Alerts</h2><${Tabs} of=${patientTabs} shown=${show}
      choose=${(/** @type {string} */ code) => setShown({ show: code, page: 1 })} counts=${counts} /></div>
    ${show === "answered" ? html`<${Answered} filters=${filters} page=${page} turn=${turn} />`
      : html`<${AlertGroups} key=${show} tab=${show} filters=${filters} page=${page} turn=${turn} counted=${setCounts} />`}
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
