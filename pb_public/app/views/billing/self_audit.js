// What an auditor would ask about the billing of a month, with the entries behind each pattern.
import { get } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { Field } from "../../ui/form.js";
import { number } from "../../ui/format.js";
import { Loaded, Nothing, useLoad } from "../../ui/states.js";
import { thisMonth } from "../../ui/when.js";
import { go } from "../../router.js";
import { html, useState } from "../../view.js";
import { patternName } from "./words.js";

/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["SelfAuditFinding"]} Finding */

// So many entries are shown; the rest is in the list of entries.
const shown = 50;

export function SelfAudit() {
  const [month, turn] = useState(thisMonth());
  const audit = useLoad((signal) => get("billing/self-audit/", { month }, signal), [month]);
  return html`<div class="filters" role="search" aria-label="Choose a month">
      <${Field} label="Month" name="month" kind="month" value=${month} onChange=${(/** @type {any} */ event) => turn(event.target.value || thisMonth())} />
    </div>
    <p class="soft">Patterns that auditors look for. Each is a question, not a verdict.</p>
    <${Loaded} from=${audit} empty=${(data) => data.findings.length === 0} nothing=${html`<${Nothing} title="Nothing stands out">No pattern was found in this month.</${Nothing}>`}>
      ${(data) => data.findings.map((/** @type {Finding} */ finding) => html`<${Pattern} key=${finding.pattern} finding=${finding} />`)}
    </${Loaded}>`;
}

/** @param {{finding: Finding}} props */
function Pattern({ finding }) {
  const rest = finding.entry_ids.length - shown;
  return html`<section class="card"><h2>${patternName(finding.pattern)} <${Badge} of=${finding.severity} /></h2>
    <p>${finding.explanation}</p>
    ${finding.entry_ids.length > 0 && html`<details><summary>${number(finding.entry_ids.length)} entries</summary><ul>
      ${finding.entry_ids.slice(0, shown).map((id, i) => html`<li key=${id}><button class="quiet" onClick=${() => go("entry", { id })}>Entry ${i + 1}</button></li>`)}
    </ul>${rest > 0 && html`<p class="soft">and ${number(rest)} more</p>`}</details>`}
    ${finding.time_entry_ids.length > 0 && html`<p class="soft">${number(finding.time_entry_ids.length)} time entries are behind it.</p>`}
  </section>`;
}
