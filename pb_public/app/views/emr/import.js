// Searches patients in the EMR and imports the selected ones one by one, so that each result shows immediately and one failure does not
// stop the others.
import { get, post } from "../../api.js";
import { can } from "../../permissions.js";
import { go } from "../../router.js";
import { Badge } from "../../ui/badge.js";
import { Field, Form } from "../../ui/form.js";
import { calendarDate, humanize } from "../../ui/format.js";
import { asProblem, EmptyState } from "../../ui/states.js";
import { StaffPicker } from "../../ui/staff_picker.js";
import { Table } from "../../ui/table.js";
import { html, useRef, useState } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["EMRPatients"]["patients"][number]} Found */
/** @typedef {{state: "importing" | "imported" | "skipped" | "failed", text: string, id?: string}} Outcome */

export function ImportPatients() {
  const [found, setFound] = useState(/** @type {Found[] | null} */ (null));
  const [outcomes, setOutcomes] = useState(/** @type {Record<string, Outcome>} */ ({}));
  const [selected, setSelected] = useState(/** @type {Set<string>} */ (new Set()));
  const [progress, setProgress] = useState({ at: 0, of: 0 });
  const stopped = useRef(false);
  const search = (/** @type {Record<string, any>} */ values) => get("emr/patients/", values);
  const shown = (/** @type {{patients: Found[]}} */ answer) => { setFound(answer.patients); setSelected(new Set()); setOutcomes({}); };
  const toggle = (/** @type {string} */ id) => {
    const next = new Set(selected);
    next.delete(id) || next.add(id);
    setSelected(next);
  };
  const importSelected = async (/** @type {Record<string, any>} */ values) => {
    const ids = [...selected];
    stopped.current = false;
    for (const [at, id] of ids.entries()) {
      if (stopped.current) {
        break;
      }
      setProgress({ at, of: ids.length });
      setOutcomes((was) => ({ ...was, [id]: { state: "importing", text: "Importing" } }));
      const outcome = await importOne(id, values);
      setOutcomes((was) => ({ ...was, [id]: outcome }));
      setSelected((was) => new Set([...was].filter((one) => one !== id)));
    }
    setProgress({ at: 0, of: 0 });
  };
  return html`<section class="card"><h2>Find patients in the EMR</h2>
      <${Form} submit="Search" send=${search} done=${shown}>${(errors) => html`<div class="fields">
        <${Field} label="Name" name="name" maxlength="100" errors=${errors} />
        <${Field} label="Date of birth" name="birthdate" kind="date" errors=${errors} />
        <${Field} label="Identifier" name="identifier" maxlength="200" hint="An MRN, or system|value" errors=${errors} />
        <${Field} label="Show up to" name="_count" kind="number" value="20" min="1" max="100" errors=${errors} /></div>`}
      </${Form}>
    </section>
    ${found && html`<section class="card"><h2>Results</h2>
      ${found.length === 0 ? html`<${EmptyState} title="No patients found in the EMR" />`
        : html`<${Table} caption="Patients in the EMR" rows=${found} keyOf=${(/** @type {Found} */ p) => p.emr_id}
          columns=${columns(selected,
          toggle, outcomes)} />
          ${progress.of > 0
            ? html`<div class="progress" role="status"><p>Importing ${progress.at + 1} of ${progress.of}</p><progress max=${progress.of}
              value=${progress.at} aria-label="Imported patients"></progress>
              <div class="actions"><button onClick=${() => { stopped.current = true; }}>Stop after this one</button></div></div>`
            : selected.size > 0 ? html`<${Options} count=${selected.size} bring=${importSelected} />`
              : html`<p class="soft">${found.every((p) => p.already_imported)
              ? "All of these are already enrolled. Change the search or show more." : "Select the patients to import."}</p>`}`}
    </section>`}`;
}

/** @param {string} id @param {Record<string, any>} options @returns {Promise<Outcome>} */
async function importOne(id, options) {
  try {
    const answer = await post("patients/import_selected_from_emr/", { patient_ids: [id], ...options });
    const done = answer.patients[0];
    if (done) {
      const without = done.left_out?.length ? `, without ${done.left_out.join(", ")}` : "";
      return { state: "imported", text: `Imported${without}`, id: done.local_id };
    }
    return { state: "skipped", text: answer.skipped_details[0]?.reason ?? "Skipped" };
  } catch (error) {
    const problem = asProblem(error);
    return { state: "failed", text: Object.values(problem.fields).flat()[0] ?? problem.message };
  }
}

/** @param {{count: number, bring: (values: Record<string, any>) => Promise<void>}} props */
const Options = ({ count, bring: importSelected }) => html`<${Form}
  submit=${count === 1 ? "Import one patient" : `Import ${count} patients`}
  send=${importSelected}>${(errors) => html`<div class="fields">
  <${StaffPicker} label="Primary provider" name="assign_to_provider" roles=${["provider"]} emptyLabel="Not assigned" errors=${errors} />
  <${Field} label="Program" name="program" value="rpm" maxlength="50" errors=${errors} /></div>`}</${Form}>`;

const tones = { importing: "pending", imported: "succeeded", skipped: "warning", failed: "failed" };

/** @param {Set<string>} chosen @param {(id: string) => void} toggle @param {Record<string, Outcome>} outcomes
 *  @returns {import("../../ui/table.js").Column[]} */
const columns = (chosen, toggle, outcomes) => [
  { name: "choose", head: "Select", cell: (p) => !p.already_imported && outcomes[p.emr_id]?.state !== "imported" && html`
    <input type="checkbox" aria-label=${`Select ${p.first_name} ${p.last_name}`} checked=${chosen.has(p.emr_id)} onChange=${() =>
      toggle(p.emr_id)} />` },
  { name: "name", head: "Name", cell: (p) => [p.last_name, p.first_name].filter(Boolean).join(", ") },
  { name: "mrn", head: "MRN" },
  { name: "date_of_birth", head: "Date of birth", cell: (p) => calendarDate(p.date_of_birth) },
  { name: "gender", head: "Gender", cell: (p) => humanize(p.gender) },
  { name: "phone", head: "Phone" },
  { name: "outcome", head: "State", cell: (p) => {
    const outcome = outcomes[p.emr_id];
    if (!outcome) {
      return html`${p.already_imported && html`<${Badge} text="Already enrolled" />`} ${p.deceased
        && html`<${Badge} of="warning" text="Deceased" />`}
        ${!p.active && html`<${Badge} of="warning" text="Inactive" />`}`;
    }
    return html`<${Badge} of=${tones[outcome.state]} text=${outcome.text} /> ${outcome.id
      && html`<button class="link" onClick=${() => go("patient", { id: outcome.id })}>Open</button>
        ${can("changePatient") && html`<button class="link" onClick=${() => go("enrolment", { id: outcome.id })}>Continue enrollment
          </button>`}`}`;
  } },
];
