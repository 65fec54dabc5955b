// Claims as a file for the clearing house or a spreadsheet. Exporting changes no claim, and is in the audit trail.
import { download } from "../../api.js";
import { Field, Form } from "../../ui/form.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";
import { useChoices } from "./entries.js";
import { states } from "./words.js";

const wanted = /** @type {[string, string][]} */ ([["", "All that wait (to be reviewed or submitted)"], ...states.slice(1)]);

export function Exports() {
  const { payers } = useChoices();
  const keep = (/** @type {Record<string, any>} */ values) => download("billing/claims-exports/", { ...values, reviewed_only: values.reviewed_only || "" }, `claims.${values.format}`);
  return html`<section class="card"><h2>Export claims</h2>
    <${Form} submit="Export" send=${keep} done=${() => toast("Exported.")}>${(errors) => html`<div class="fields">
      <${Field} label="Claims" name="status" kind="select" options=${wanted} errors=${errors} />
      <${Field} label="Payer" name="payer_id" kind="select" options=${[["", "All payers"], ...payers]} errors=${errors} />
      <${Field} label="File" name="format" kind="select" value="csv" options=${[["csv", "CSV, for spreadsheets"], ["json", "JSON, for programs"]]} errors=${errors} />
    </div>
    <${Field} label="Reviewed ones only" name="reviewed_only" kind="checkbox" errors=${errors} />`}</${Form}>
  </section>`;
}
