// Exports claims as a file for the clearinghouse or a spreadsheet, by default the reviewed ones. An export changes no claim and is audited.
import { download } from "../../api.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";
import { useChoices } from "./entries.js";
import { states } from "./labels.js";

const wanted = /** @type {[string, string][]} */ ([["reviewed", "Reviewed, ready to submit"], ["pending", "All not submitted"],
  ...states.slice(1).filter(([state]) => state !== "reviewed" && state !== "pending_review"), ["pending_review", "To review"]]);

/** @param {{close: () => void}} props */
export function ExportClaims({ close }) {
  const { payers } = useChoices();
  const keep = (/** @type {Record<string, any>} */ values) => download("billing/claims-exports/", values, `claims.${values.format}`);
  return html`<${Dialog} title="Export claims" close=${close}>
    <${Form} submit="Export" cancel=${close} send=${keep}
      done=${() => { toast("Exported. The file contains PHI: store it securely."); close(); }}>${(errors) =>
      html`<div class="fields">
      <${Field} label="Claims" name="status" kind="select" value="reviewed" options=${wanted} errors=${errors} />
      <${Field} label="Payer" name="payer_id" kind="select" options=${[["", "All payers"], ...payers]} errors=${errors} />
      <${Field} label="File" name="format" kind="select" value="csv" options=${[["csv", "CSV, for spreadsheets"],
        ["json", "JSON, for programs"]]} errors=${errors} />
    </div>`}</${Form}>
  </${Dialog}>`;
}
