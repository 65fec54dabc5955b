// Texts from numbers of no patient, of several, or of one who is not monitored: a person reads each and closes it.
import { post } from "../../api.js";
import { can } from "../../permissions.js";
import { ActionButton } from "../../ui/form.js";
import { dateTime } from "../../ui/format.js";
import { List } from "../../ui/table.js";
import { html, useState } from "../../view.js";
import { go } from "../../router.js";

export function UnmatchedTexts() {
  const [turn, setTurn] = useState(0);
  return html`<p class="soft">No reading in these texts was stored. Call the number, then close the text.</p>
    <${List} path="messaging/unmatched/" query=${{ status: "open" }} turn=${turn} size=${20} caption="Texts without a certain patient"
      nothing="No open texts" columns=${[
        { name: "received_at", head: "Received", cell: (m) => dateTime(m.received_at) },
        { name: "from", head: "From", cell: (m) => html`<a href=${`tel:${m.from}`}>${m.from}</a>` },
        { name: "text", head: "Text", cell: (m) => html`<span class="words">${m.text}</span>` },
        { name: "patient_ids", head: "Patients with this number", cell: (m) => (m.patient_ids.length === 0 ? "None"
          : m.patient_ids.map((/** @type {string} */ id, /** @type {number} */ n) => html`<button class="link"
            onClick=${() => go("patient", { id })}>Open ${n + 1}</button> `)) },
        ...(can("closeTexts") ? [{ name: "act", head: html`<span class="unseen">Actions</span>`, cell: (m) => html`<${ActionButton}
          act=${() => post(`messaging/unmatched/${m.id}/close/`)} doneText="Closed." done=${() => setTurn((n) => n + 1)}
          aria-label=${`Close the text from ${m.from}`}>Close</${ActionButton}>` }] : []),
      ]} />`;
}
