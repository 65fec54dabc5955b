// Billing: who is nearly billable, the entries and their claims, eligibility, exports, payers and rates. Clinicians who
// document the service see entries and eligibility; amounts, claim steps and payers are for those who bill.
import { can } from "../can.js";
import { Tabs } from "../ui/tabs.js";
import { html } from "../view.js";
import { Eligibility } from "./billing/eligibility.js";
import { Entries } from "./billing/entries.js";
import { Exports } from "./billing/exports.js";
import { Fees } from "./billing/fees.js";
import { ClaimFiles } from "./billing/files.js";
import { NearBillable } from "./billing/near.js";
import { Payers } from "./billing/payers.js";
import { SelfAudit } from "./billing/self_audit.js";

export function Billing() {
  return html`<div class="heading"><h1>Billing</h1></div>
    <${Tabs} label="Billing" tabs=${[
      { key: "entries", name: "Entries", show: () => html`<${Entries} />` },
      { key: "near", name: "Nearly billable", show: () => html`<${NearBillable} />` },
      { key: "eligibility", name: "Eligibility", show: () => html`<${Eligibility} />` },
      can("readRevenue") && { key: "exports", name: "Exports", show: () => html`<${Exports} />` },
      can("readRevenue") && { key: "files", name: "Claim files", show: () => html`<${ClaimFiles} />` },
      can("readRevenue") && { key: "audit", name: "Self-audit", show: () => html`<${SelfAudit} />` },
      can("readRevenue") && { key: "payers", name: "Payers and rates", show: () => html`<${Payers} />` },
      can("readRevenue") && { key: "fees", name: "Fee schedule", show: () => html`<${Fees} />` },
    ]} />`;
}
