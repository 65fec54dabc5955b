// Financial reports: parameters, figures, charts, tables, and export.
import { get } from "../api.js";
import { useQuery } from "../query.js";
import { ActionButton, Field } from "../ui/form.js";
import { fullTime } from "../ui/format.js";
import { PatientPicker } from "../ui/patient_picker.js";
import { Loaded, useLoad } from "../ui/states.js";
import { useInSight } from "../ui/tabs.js";
import { daysAgo } from "../ui/time.js";
import { html, useRef } from "../view.js";
import { useChoices } from "./billing/entries.js";
import { ReportBody } from "./reports/body.js";
import { ExportReport, keep } from "./reports/export.js";
import { reports } from "./reports/kinds.js";

/** @typedef {{date_from: string, date_to: string, payer_id: string, provider_id: string, cpt_code: string, patient_id: string}}
 * Parameters */

const none = { date_from: "", date_to: "", payer_id: "", provider_id: "", cpt_code: "", patient_id: "" };

export function Reports() {
  const [{ report: name, ...parameters }, set] = useQuery({ report: "", ...none }, ["patient_id"]);
  const report = reports.find((one) => one.name === name) ?? reports[0];
  const file = name === "export";
  const row = useInSight(name);
  const choose = (/** @type {string} */ to) => set({ report: to });
  return html`<div class="heading"><h1>Reports</h1></div>
    <div class="reports">
      <nav aria-label="Reports" class="no-print" ref=${row}>
        ${reports.map((one) => html`<button key=${one.name} aria-current=${!file && one === report ? "page" : null} onClick=${() =>
          choose(one.name)}>${one.title}</button>`)}
        <button aria-current=${file ? "page" : null} onClick=${() => choose("export")}>Export to a file</button>
      </nav>
      ${file ? html`<${ExportReport} />` : html`<div>
        <h2>${report.title}</h2>
        <p class="soft">${report.about}</p>
        <${ParameterForm} parameters=${parameters} change=${set} />
        <${Report} key=${report.name} report=${report} parameters=${parameters} />
      </div>`}
    </div>`;
}

/** @param {{parameters: Parameters, change: (step: Partial<Parameters>) => void}} props */
function ParameterForm({ parameters, change }) {
  const choices = useChoices();
  const providers = useLoad((signal) => get("billing/reports/provider-productivity/", { date_from: daysAgo(4 * 365) }, signal), []);
  const names = /** @type {[string, string][]} */ ((providers.data?.results ?? []).filter((row) => row.provider_id !== null).map((row) =>
    [String(row.provider_id), row.provider]));
  const choice = (/** @type {string} */ label, /** @type {keyof Parameters} */ name, /** @type {[string, string][]} */ options) => html`
    <${Field} label=${label} name=${name} kind="select" value=${parameters[name]} options=${options} onChange=${(event) =>
      change({ [name]: event.target.value })} />`;
  return html`<div class="filters no-print" role="search" aria-label="Report parameters">
    <${Field} label="From" name="date_from" kind="date" value=${parameters.date_from} onChange=${(event) =>
      change({ date_from: event.target.value })} />
    <${Field} label="To" name="date_to" kind="date" value=${parameters.date_to} onChange=${(event) =>
      change({ date_to: event.target.value })} />
    ${choice("Payer", "payer_id", [["", "All payers"], ...choices.payers])}
    ${choice("Provider", "provider_id", [["", "All providers"], ...names])}
    ${choice("Code", "cpt_code", [["", "All codes"], ...choices.codes])}
    <${PatientPicker} label="Patient" chosen=${(patient) => change({ patient_id: patient?.id ?? "" })} />
    ${parameters.patient_id && html`<button type="button" onClick=${() => change({ patient_id: "" })}>All patients</button>`}
  </div>`;
}

/** @param {{report: import("./reports/kinds.js").Kind, parameters: Parameters}} props */
function Report({ report, parameters }) {
  const [{ page }, setQuery] = useQuery({ page: 1 });
  const isRefresh = useRef(false);
  const requestKey = JSON.stringify(parameters);
  const paged = report.paged ? { page, page_size: 20 } : {};
  const path = `billing/reports/${report.name}/`;
  const made = useLoad((signal) => {
    const refresh = isRefresh.current || "";
    isRefresh.current = false;
    return get(path, { ...parameters, ...paged, refresh }, signal);
  }, [requestKey, page]);
  const again = () => { isRefresh.current = true; made.reload(); };
  return html`<${Loaded} from=${made}>${(data) => html`
    <div class="bar-of-acts">
      <p class="soft" role="status">${period(data)} ${data.cached ? "Cached" : "Calculated"} ${fullTime(data.generated_at)}.</p>
      <button disabled=${made.loading} onClick=${again}>${made.loading ? "One moment" : "Refresh"}</button>
      <${ActionButton} act=${() => keep(path, { ...parameters, export: "csv" }, `${report.name}.csv`)}>CSV</${ActionButton}>
      <${ActionButton} act=${() => keep(path, { ...parameters, export: "pdf" }, `${report.name}.pdf`)}>PDF</${ActionButton}>
    </div>
    <${ReportBody} report=${report} data=${data} page=${page} turn=${(/** @type {number} */ to) => setQuery({ page: to })} />`}
  </${Loaded}>`;
}

/** @param {{date_from: string | null, date_to: string | null}} data */
const period = (data) => (data.date_from || data.date_to ? `${data.date_from ?? "The beginning"} to ${data.date_to ?? "today"}.`
  : "All time.");
