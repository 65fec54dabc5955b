// Copies in the EMR that could not be updated: a person corrects them there manually and confirms it here.
import { post } from "../../api.js";
import { can } from "../../permissions.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { ago } from "../../ui/format.js";
import { List } from "../../ui/table.js";
import { contentOf } from "./content.js";
import { html, useState } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["Transmission"]} Transmission */

export function Corrections() {
  const [open, setOpen] = useState(/** @type {Transmission | null} */ (null));
  const [revision, setRevision] = useState(0);
  return html`<p class="soft">These readings were retracted or completed after delivery, and the EMR did not accept the
    change. Correct the copy in the EMR.</p>
    <${List} path="fhir/transmissions/" query=${{ correction_due: true }} turn=${revision} caption="Copies to correct manually"
      nothing="No corrections needed in the EMR"
      open=${can("transmit") ? setOpen : undefined} columns=${columns} />
    ${open && html`<${Dialog} title="Corrected in the EMR" close=${() => setOpen(null)}>
      <p>${open.patient_name}, ${contentOf(open)}. ${open.error_message}</p>
      <${Form} submit="Mark as corrected" send=${(/** @type {any} */ values) => post(`fhir/transmissions/${open.id}/acknowledge/`, values)}
        done=${() => { setOpen(null); setRevision(revision + 1); }}>
        ${(/** @type {any} */ errors) => html`<${Field} label="Correction" name="notes" kind="textarea" maxlength="2000"
          errors=${errors} />`}
      </${Form}>
    </${Dialog}>`}`;
}

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "patient_name", head: "Patient" }, { name: "observation_type", head: "Content", cell: contentOf },
  { name: "due", head: "Since", cell: (row) => ago(row.correction?.due_since) }, { name: "error_message", head: "EMR response",
    cell: (row) => row.error_message ?? "" },
  { name: "id", head: "Delivery" },
];
