// Audit findings on the billing of a month, with the entries of each pattern.
import { get } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { calendarDate, money, number } from "../../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { Table } from "../../ui/table.js";
import { go } from "../../router.js";
import { html, useState } from "../../view.js";
import { patternName, stateName } from "./labels.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["SelfAuditFinding"]} Finding */

// Entries loaded at once; more on click.
const step = 50;

/** @param {{month: string}} props */
export function SelfAudit({ month }) {
  const audit = useLoad((signal) => get("billing/self-audit/", { month }, signal), [month]);
  return html`<p class="soft">Patterns that auditors look for. A pattern is not proof of an error.</p>
    <${Loaded} from=${audit} empty=${(data) => data.findings.length === 0} nothing=${html`<${EmptyState}
      title="No findings">No patterns were found in this month.</${EmptyState}>`}>
      ${(data) => data.findings.map((/** @type {Finding} */ finding) => html`<${Pattern} key=${data.month + finding.pattern}
        finding=${finding} />`)}
    </${Loaded}>`;
}

/** @param {{finding: Finding}} props */
function Pattern({ finding }) {
  const [open, setOpen] = useState(false);
  return html`<section class="card"><h2>${patternName(finding.pattern)} <${Badge} of=${finding.severity} /></h2>
    <p>${finding.explanation}</p>
    ${finding.entry_ids.length > 0 && html`<details
      onToggle=${(/** @type {any} */ event) => setOpen(event.target.open)}>
      <summary>${number(finding.entry_ids.length)} ${finding.entry_ids.length === 1 ? "entry" : "entries"}</summary>
      ${open && html`<${Lines} ids=${finding.entry_ids} name=${patternName(finding.pattern)} />`}</details>`}
    ${finding.time_entry_ids.length > 0 && html`<p class="soft">${number(finding.time_entry_ids.length)} related time entries.</p>`}
  </section>`;
}

/** The entries of a pattern. @param {{ids: string[], name: string}} props */
function Lines({ ids, name }) {
  const [limit, setLimit] = useState(step);
  const shownIds = ids.slice(0, limit);
  const lines = useLoad(async (signal) => {
    const found = [];
    for (let i = 0; i < shownIds.length; i += step) {
      found.push(...(await get("billing/entries/", { ids: shownIds.slice(i, i + step).join(","), page_size: step, status: "" },
        signal)).results);
    }
    return found;
  }, [limit]);
  return html`<${Loaded} from=${lines}>${(data) => html`<${Table} caption=${`Entries: ${name}`} rows=${data} columns=${columns}
    open=${(/** @type {any} */ row) => go("entry", { id: row.id })} zone=${false} />
    ${ids.length > limit && html`<button type="button" onClick=${() => setLimit(limit + step)}>Show ${number(Math.min(step,
      ids.length - limit))} more of ${number(ids.length)}</button>`}`}</${Loaded}>`;
}

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "claim_id", head: "Claim" }, { name: "patient_name", head: "Patient", cell: (row) => html`<bdi>${row.patient_name}</bdi>` },
    { name: "cpt_code", head: "Code" },
  { name: "service_date", head: "Service date", cell: (row) => calendarDate(row.service_date) }, { name: "amount", head: "Amount",
    number: true, cell: (row) => money(row.amount) },
  { name: "lifecycle_status", head: "State", cell: (row) => html`<${Badge} of=${row.lifecycle_status}
    text=${stateName(row.lifecycle_status)} />` },
];
