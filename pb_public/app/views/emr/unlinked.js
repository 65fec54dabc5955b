// Patients who are not linked to the EMR: their readings wait until a user finds and links them.
import { get, post } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { ago, calendarDate } from "../../ui/format.js";
import { asProblem, EmptyState } from "../../ui/states.js";
import { List, Table } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["UnlinkedPatient"]} Unlinked */
/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["EMRPatients"]["patients"][number]} Found */

export function UnlinkedPatients() {
  const [open, setOpen] = useState(/** @type {Unlinked | null} */ (null));
  const [revision, setRevision] = useState(0);
  return html`<p
    class="soft">These patients are not linked to the EMR. Their readings are held and delivered automatically once a patient is
    linked.</p>
    <${List} path="emr/unlinked-patients/" turn=${revision} caption="Patients not linked to the EMR"
      nothing="All patients are linked to the EMR"
      keyOf=${(/** @type {Unlinked} */ row) => row.patient_id} open=${setOpen} columns=${columns} />
    ${open && html`<${Link} patient=${open} close=${() => setOpen(null)} done=${() => { setOpen(null); setRevision(revision + 1); }} />`}`;
}

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "patient_name", head: "Patient" },
  { name: "mrn", head: "MRN" },
  { name: "date_of_birth", head: "Date of birth", cell: (row) => calendarDate(row.date_of_birth) },
  { name: "waiting_readings", head: "Waiting readings", number: true },
  { name: "oldest_reading_at", head: "Since", cell: (row) => (row.oldest_reading_at ? ago(row.oldest_reading_at) : "") },
];

const warnings = /** @type {Record<string, string>} */ ({
  name_differs: "The EMR has a different name.", date_of_birth_differs: "The EMR has a different date of birth.",
  mrn_differs: "The EMR has a different MRN.",
  deceased: "The EMR records this person as deceased.", inactive: "The EMR no longer uses this record.",
});

/** Finds the patient in the EMR. @param {{patient: Unlinked, close: () => void, done: () => void}} props */
function Link({ patient, close, done }) {
  const [found, setFound] = useState(/** @type {Found[] | null} */ (null));
  const [mismatchId, setMismatchId] = useState(""); // id of the record with a different identity
  const link = async (/** @type {string} */ id, /** @type {boolean} */ confirmed) => {
    try {
      const { warnings: messages } = await post(`emr/unlinked-patients/${patient.patient_id}/link/`, { emr_id: id, confirmed });
      toast(["Linked. Waiting readings are being sent.", ...messages.map((/** @type {string} */ w) => warnings[w])].join(" "),
        messages.length ? "problem"
        : "done");
      done();
    } catch (error) {
      if (asProblem(error).code !== "identity_differs") {
        throw error;
      }
      setMismatchId(id);
    }
  };
  return html`<${Dialog} wide title=${`Link ${patient.patient_name}`} close=${close}>
    <p>Date of birth ${calendarDate(patient.date_of_birth)}, MRN ${patient.mrn}, ${patient.waiting_readings} waiting readings.</p>
    <${Form} submit="Search the EMR" send=${(/** @type {any} */ values) => get("emr/patients/", values)}
      done=${(/** @type {{patients: Found[]}} */ answer) => { setFound(answer.patients); setMismatchId(""); }}>
      ${(/** @type {any} */ errors) => html`<div class="fields">
        <${Field} label="Name" name="name" maxlength="100" value=${patient.patient_name} errors=${errors} />
        <${Field} label="Date of birth" name="birthdate" kind="date" value=${patient.date_of_birth} errors=${errors} />
        <${Field} label="Identifier" name="identifier" maxlength="200" hint="An MRN, or system|value" errors=${errors} /></div>`}
    </${Form}>
    ${found && (found.length === 0 ? html`<${EmptyState}
      title="No patients found in the EMR">Try a broader search: only the last name, or only
      the MRN.</${EmptyState}>`
      : html`<${Table} caption="Patients in the EMR" rows=${found} keyOf=${(/** @type {Found} */ p) => p.emr_id} columns=${[...foundColumns,
        {
        name: "link", head: "", cell: (/** @type {Found} */ p) => !p.already_imported && (mismatchId === p.emr_id
          ? html`<${ActionButton} kind="danger" act=${() => link(p.emr_id, true)}>Name or date of birth differs: link anyway
            </${ActionButton}>`
          : html`<${ActionButton} kind="main" act=${() => link(p.emr_id, false)}>Link</${ActionButton}>`) }]} />`)}
  </${Dialog}>`;
}

/** @type {import("../../ui/table.js").Column[]} */
const foundColumns = [
  { name: "name", head: "Name", cell: (p) => [p.last_name, p.first_name].filter(Boolean).join(", ") },
  { name: "date_of_birth", head: "Date of birth", cell: (p) => calendarDate(p.date_of_birth) },
  { name: "mrn", head: "MRN" },
  { name: "state", head: "State", cell: (p) => html`${p.already_imported && html`<${Badge} text="Linked to another patient" />`}
    ${p.deceased && html`<${Badge} of="warning" text="Deceased" />`} ${!p.active && html`<${Badge} of="warning" text="Inactive" />`}` },
];
