// Patients with unfinished enrollments, the missing items, and what they block.
import { get } from "../../api.js";
import { can } from "../../permissions.js";
import { useQuery } from "../../query.js";
import { go } from "../../router.js";
import { Field } from "../../ui/form.js";
import { day } from "../../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { Pages, Table } from "../../ui/table.js";
import { html } from "../../view.js";
import { steps, stepWith } from "./steps.js";

/** @type {[string, string][]} */
const stops = [["", "Anything"], ["monitoring", "Monitoring"], ["alerts", "Alerts"], ["billing", "Billing"], ["claims", "Claims"],
  ["delivery", "Delivery to the EMR"]];
const size = 20;

export function Unfinished() {
  const [query, setQuery] = useQuery({ state: "", step: "", stops: "", page: 1 });
  const from = useLoad((signal) => get("enrolments/", { ...query, page_size: size }, signal), [JSON.stringify(query)]);
  const counts = from.data;
  const counted = (/** @type {string} */ name, /** @type {Record<string, number> | undefined} */ of, /** @type {string[]} */ keys) =>
    `${name}${of ? ` (${keys.reduce((sum, key) => sum + (of[key] ?? 0), 0)})` : ""}`;
  const filter = (/** @type {string} */ name) => (/** @type {any} */ event) => setQuery({ [name]: event.target.value });
  return html`<div class="heading"><h1>Enrollment${counts && html` <span class="count">${counts.total}<span
    class="unseen"> not done</span></span>`}</h1>
      ${can("changePatient") && html`<button class="main"
        onClick=${() => go("enrolment", { fresh: true })}>Enroll patient</button>`}</div>
    <div class="filters">
      <${Field} label="Show" name="state" kind="select" value=${query.state} onChange=${filter("state")}
        options=${[["", `All${counts ? ` (${counts.total})` : ""}`], ["missing", `Missing items${counts ? ` (${counts.missing})`
          : ""}`], ["waiting", `Waiting for the first reading${counts ? ` (${counts.waiting})` : ""}`]]} />
      <${Field} label="Step" name="step" kind="select" value=${query.step} onChange=${filter("step")}
        options=${[["", "All steps"], ...parts.map(([key, name]) => [key, counted(name, counts?.steps, [key])])]} />
      <${Field} label="Blocks" name="stops" kind="select" value=${query.stops} onChange=${filter("stops")}
        options=${stops.map(([key, name]) => [key, key ? counted(name, counts?.stops, [key]) : name])} />
    </div>
    <${Loaded} from=${from} empty=${(data) => data.count === 0} nothing=${html`<${EmptyState}
      title=${counts?.total === 0 ? "All enrollments are complete" : "No patients match"} />`}>
      ${(data) => html`<${Table} caption="Unfinished enrollments" rows=${data.results} keyOf=${(row) => row.patient_id}
        open=${(row) => go("enrolment", { id: row.patient_id })} columns=${columns} />
        <${Pages} page=${query.page} count=${data.count} size=${size} turn=${(page) => setQuery({ page })} of="Unfinished enrollments" />`}
    </${Loaded}>`;
}

/** Names of the server's steps. @type {[string, string][]} */
const parts = [["person", "Patient"], ["consent", "Consent"], ["payer", "Payer"], ["order", "Order"], ["diagnoses", "Diagnosis"],
  ["team", "Care team"], ["thresholds", "Thresholds"],
  ["device", "Device"], ["reading", "First reading"]];

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "name", head: "Patient", cell: (row) => html`<bdi>${row.patient_name}</bdi>` },
  { name: "mrn", head: "MRN" },
  { name: "missing", head: "Missing", cell: (row) => (row.missing.length === 0 ? html`<span
    class="soft">Waiting for the first reading</span>`
    : html`<span class="enrol-gaps">${row.missing.slice(0, 3).map((item) => html`<span key=${item.code}
      title=${item.effect}>${item.detail.replace(/\.$/, "")}</span>`)}${
      row.missing.length > 3 && html`<span>and ${row.missing.length - 3} more</span>`}</span>`) },
  { name: "stops", head: "Blocks", cell: (row) => row.stops.map((stop) => stops.find(([key]) => key === stop)?.[1]).join(", ") || "–" },
  { name: "done", head: "Done", cell: (row) =>
    `${row.of - new Set(row.steps.map((step) => stepWith(step).step)).size - (row.of - steps.length)} of ${steps.length}` },
  { name: "created_at", head: "Since", cell: (row) => day(row.created_at) },
];
