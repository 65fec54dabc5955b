// The month's end: entries to review or to send, what blocks them and how to fix it; review together or one by one. Filters, page and
// stage are in the address.
import { getAll, get } from "../../api.js";
import { useQuery } from "../../query.js";
import { go } from "../../router.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { html } from "../../view.js";
import { BlockedBy, AlmostBillable } from "./month/side_column.js";
import { Batches, NextBatch } from "./month/batches.js";
import { Funnel } from "./month/funnel.js";
import { stages, Worklist } from "./month/worklist.js";

/** @typedef {import("./blocking_reasons.js").Row} Row */
/** @typedef {import("./month/funnel.js").FunnelData} FunnelData */

/** @param {{month: string, funnel: FunnelData, turn: number, changed: () => void}} props turn counts changes */
export function MonthEnd({ month, funnel, turn, changed }) {
  const [query, setQuery] = useQuery({ stage: "pending_review", show: "all", why: "", code: "", payer: "", page: 1 });
  const sheet = useLoad((signal) => get("billing/month-end/", { month }, signal), [month, turn]);
  const near = useLoad(() => getAll("billing/near-billable/", { ordering: "-worth" }), [turn]);
  const stage = stages[query.stage] ? query.stage : "pending_review";
  const choose = (/** @type {string} */ to) => (stages[to] ? setQuery({ stage: to, show: "all", why: "" })
    : go("billing", {}, { tab: "entries", status: to, ...(month ? datesOf(month) : {}) }));
  const entries = /** @type {Row[]} */ (sheet.data?.results ?? []);
  const rows = entries.filter((row) => row.lifecycle_status === stage).sort(byName);
  const blocked = entries.filter((row) => row.lifecycle_status === "pending_review" && !row.ready).length;
  return html`<${Funnel} funnel=${funnel} blocked=${sheet.data && blocked} at=${stage} choose=${choose} />
    <div class="month-end">
      <div class="beside">
        <${BlockedBy} rows=${rows} why=${query.why}
          choose=${(/** @type {string} */ why) => setQuery({ why, show: why ? "blocked" : "all" })} />
        ${near.data && funnel.days_left > 0 && html`<${AlmostBillable} near=${near.data} />`}</div>
      <div class="panel wide"><${Loaded} from=${sheet}>${() => html`<${Worklist} key=${month + stage} sheet=${sheet.data} rows=${rows}
        query=${{ ...query, stage }} setQuery=${setQuery} changed=${changed} />`}</${Loaded}></div>
    </div>
    <div class="after"><${Batches} turn=${turn} changed=${changed} />
      ${sheet.data && html`<${NextBatch} sheet=${sheet.data} changed=${changed}
        errors=${() => setQuery({ stage: "reviewed", show: "blocked", why: "" })} />`}</div>`;
}

/** Sorts a patient's entries together. @param {Row} a @param {Row} b */
const byName = (a, b) => a.patient_name.localeCompare(b.patient_name) || a.patient_id.localeCompare(b.patient_id)
  || a.cpt_code.localeCompare(b.cpt_code) || a.service_date.localeCompare(b.service_date);

/** The first and last day of a month. @param {string} month */
export function datesOf(month) {
  const [year, of] = month.split("-").map(Number);
  return { date_from: `${month}-01`, date_to: `${month}-${String(new Date(year, of, 0).getDate()).padStart(2, "0")}` };
}
