// A patient's eligibility today, and for each code of a month the billed entry or the missing requirements.
import { get } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { Field } from "../../ui/form.js";
import { humanize } from "../../ui/format.js";
import { PatientPicker } from "../../ui/patient_picker.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { thisMonth } from "../../ui/time.js";
import { html, useState } from "../../view.js";
import { Explained } from "./code_explanation.js";

export function Eligibility() {
  const [patient, setPatient] = useState(/** @type {import("../../ui/patient_picker.js").Patient | null} */ (null));
  const [month, setMonth] = useState(thisMonth());
  return html`<div class="filters" role="search" aria-label="Choose a patient and a month">
      <${PatientPicker} label="Patient" chosen=${setPatient} />
      <${Field} label="Month" name="month" kind="month" value=${month} onChange=${(event) => setMonth(event.target.value || thisMonth())} />
    </div>
    ${patient ? html`<div class="split"><section class="card"><h2>Codes of the month</h2><${Explained} patient=${patient.id}
      month=${month} /></section>
      <section class="card"><h2>Eligible today?</h2><${Checks} patient=${patient.id} /></section></div>`
      : html`<${EmptyState} title="Choose a patient">Eligibility and the codes of the month are shown here.</${EmptyState}>`}`;
}

/** @param {{patient: string}} props */
function Checks({ patient }) {
  const answer = useLoad((signal) => get(`billing/eligibility/${patient}/`, {}, signal), [patient]);
  return html`<${Loaded} from=${answer}>${(data) => html`
    <p role="status"><${Badge} of=${data.eligible ? "healthy" : "warning"} text=${data.eligible ? "Eligible" : "Not eligible"} /></p>
    <ul class="steps">${data.checks.map((check) => html`<li
      key=${check.name}><strong>${check.ok ? "✓" : "✗"} ${humanize(check.name)}</strong>
      <span class="unseen">${check.ok ? "met" : "not met"}</span><span class="two">${check.detail}</span></li>`)}</ul>`}
  </${Loaded}>`;
}
