// Exports a report as a file with selected columns. Files contain patient names: the user must store them securely.
import { download } from "../../api.js";
import { Field, Form } from "../../ui/form.js";
import { humanize } from "../../ui/format.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";
import { reports } from "./kinds.js";

/** @param {string} path @param {Record<string, any>} query @param {string} name */
export const keep = (path, query, name) =>
  download(path, query, name).then(() => toast("Downloaded. The file contains PHI: store it securely."));

// The selectable columns of each report's file.
const money3 = ["claims", "revenue", "collected"];
/** @type {Record<string, string[]>} */
const fields = {
  "executive-dashboard": ["month", "revenue", "collected", "claims", "change_pct"],
  "revenue": ["cpt_code", "claims", "units", "revenue", "collected"],
  "claims-status": ["status", "lifecycle_status", "claims", "amount", "oldest_service_date"],
  "unbilled": ["patient_id", "patient_name", "mrn", "cpt_code", "period_start", "period_end", "transmission_days", "minutes", "reason",
    "estimated_amount"],
  "aging": ["bucket", "claims", "amount", "open"],
  "payer-performance": ["payer_id", "payer", "submitted", "paid", "denied", "approval_rate", "denial_rate", "avg_days_to_payment"],
  "patient-summary": ["patient_id", "patient_name", "mrn", "lifetime_revenue", "collected", "claims", "last_service_date", "eligible"],
  "cpt-utilization": ["cpt_code", "volume", "units", "revenue", "avg_reimbursement", "denial_rate"],
  "monthly-trend": ["month", ...money3, "growth_rate"],
  "provider-productivity": ["provider_id", "provider", "patients_managed", "claims", "revenue", "revenue_per_patient",
    "interactive_minutes"],
  "tasks-summary": ["entry_id", "task", "patient_name", "cpt_code", "age_days"],
  "quick-stats": ["total_revenue", "claims_count", "collection_rate", "as_of"],
};

export function ExportReport() {
  const [report, setReport] = useState("revenue");
  const send = (/** @type {Record<string, any>} */ values) => {
    const wanted = fields[report].filter((field) => values[`field.${field}`]);
    return keep("billing/reports/export/", {
      report, format: values.format, date_from: values.date_from, date_to: values.date_to, fields: wanted.length < fields[report].length
        ? wanted.join(",") : "",
    }, `${report}.${values.format}`);
  };
  return html`<section class="card"><h2>Export to a file</h2>
    <${Form} submit="Export" send=${send}>${(errors) => html`<div class="fields">
        <${Field} label="Report" name="report" kind="select" value=${report} options=${reports.map((one) => [one.name, one.title])}
          onChange=${(event) => setReport(event.target.value)} errors=${errors} />
        <${Field} label="File" name="format" kind="select" value="csv" options=${[["csv", "CSV"], ["pdf", "PDF"]]} errors=${errors} />
        <${Field} label="From" name="date_from" kind="date" hint="Leave blank for the report’s default period" errors=${errors} />
        <${Field} label="To" name="date_to" kind="date" errors=${errors} /></div>
      <fieldset class="bounds" key=${report}><legend>Columns</legend><div class="columns">${fields[report].map((field) => html`
        <${Field} key=${field} label=${humanize(field)} name=${`field.${field}`} kind="checkbox" value=${true} />`)}</div>
        ${errors.fields && html`<small class="wrong" role="alert">${errors.fields.join(" ")}</small>`}</fieldset>`}
    </${Form}>
  </section>`;
}
