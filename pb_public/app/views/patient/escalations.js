// The escalations of a patient.
import { get } from "../../api.js";
import { can } from "../../permissions.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { html, useState } from "../../view.js";
import { EscalateDialog } from "../escalate.js";
import { EscalationCard } from "../escalations/card.js";
import { useTurn } from "./alerts.js";

/** @param {{id: string, name: string, turn: number, changed: () => void}} props */
export function PatientEscalations({ id, name, turn, changed }) {
  const [dialog, setDialog] = useState(false);
  const list = useLoad((signal) => get("escalations/", { patient_id: id, page_size: 50 }, signal), [id]);
  useTurn(list, turn);
  const put = (/** @type {any} */ changedEscalation) => {
    list.change((data) => ({ ...data, results: data.results.map((one) => (one.id === changedEscalation.id ? changedEscalation : one)) }));
    changed();
  };
  return html`<section aria-labelledby="escalations">
    <div class="heading"><h2 id="escalations">Escalations</h2>${can("escalate")
      && html`<button class="main" onClick=${() => setDialog(true)}>Escalate</button>`}</div>
    <${Loaded} from=${list} empty=${(data) => data.results.length === 0} nothing=${html`<${EmptyState} title="No escalations yet" />`}>
      ${(data) => html`<ol class="alerts" aria-label="Escalations, newest first">${data.results.map((one) =>
        html`<${EscalationCard} key=${one.id} escalation=${one} changed=${put} named=${false} />`)}</ol>`}
    </${Loaded}>
    ${dialog && html`<${EscalateDialog} patient=${{ id, name }} close=${() => setDialog(false)}
      done=${() => { list.reload(); changed(); }} />`}
  </section>`;
}
