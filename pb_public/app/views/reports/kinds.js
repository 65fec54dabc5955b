// The content of each report in menu order: figures, charts, tables. The server computes all values.
import { calendarDate, money, number, percent, humanize } from "../../ui/format.js";
import { stateName } from "../billing/labels.js";
import { go } from "../../router.js";
import { html } from "../../view.js";

/** @typedef {import("../../ui/table.js").Column} Column */
/** @typedef {{title: string, of: (data: any) => any[], columns: Column[], keyOf: (row: any) => string}} Sheet */
/** @typedef {{kind: "time" | "bars", title: string, of: (data: any) => any[], label?: (row: any) => string, value: (row: any) => number,
 * second?: {name: string, value: (row: any) => number}, name?: string, text?: (n: number) => string}} Chart */
/** @typedef {{name: string, title: string, about: string, paged?: boolean, figures?: (data: any) => [string, any][], charts?: Chart[],
 * sheets: Sheet[]}} Kind */

/** @param {string} name @param {string} head @param {(value: any) => any} [write] @returns {Column} */
const text = (name, head, write = (value) => value ?? "–") => ({ name, head, cell: (row) => write(row[name]) });
/** @param {string} name @param {string} head @param {(value: any) => any} [write] @returns {Column} */
const amount = (name, head, write = money) => ({ name, head, number: true, cell: (row) => write(row[name]) });
/** @param {string} name @param {string} head */
const count = (name, head) => amount(name, head, number);
/** @param {string} name @param {string} head */
const share = (name, head) => amount(name, head, percent);
/** Percentages as the server sends them. @param {number | null} value */
const points = (value) => (value === null ? "–" : `${number(value)} %`);
/** @param {any} row */
const month = (row) => row.month;
/** @param {string} name */
const pick = (name) => (/** @type {any} */ row) => row[name];
/** @param {string} head @param {(row: any) => any} name @param {(row: any) => void} open @returns {Column} */
const link = (head, name, open) =>
  ({ name: "link", head, cell: (row) => html`<button class="link" onClick=${() => open(row)}>${name(row)}</button>` });
const patient = link("Patient", (row) => `${row.patient_name} · ${row.mrn}`, (row) => go("patient", { id: row.patient_id }));
const money3 = [count("claims", "Claims"), amount("revenue", "Revenue"), amount("collected", "Collected")];

/** @type {Kind[]} */
export const reports = [
  {
    name: "executive-dashboard", title: "Executive dashboard", about: "Revenue month over month, and claims by state.",
    figures: (d) => [["Revenue", money(d.revenue.total)], ["Collected", money(d.revenue.collected)],
      ["Previous period", money(d.revenue.previous_total)], ["Change", points(d.revenue.change_pct)],
      ["Collection rate", percent(d.collection_rate)], ["Active patients", number(d.active_patients)],
      ["Compliance", points(d.compliance_rate)]],
    charts: [{ kind: "time", title: "Revenue and payments by month", of: (d) => d.month_over_month, label: month, value: pick("revenue"),
      name: "Revenue", second: { name: "Collected", value: pick("collected") } },
      { kind: "bars", title: "Claims by state", of: (d) => Object.entries(d.claims_by_status).map(([state, claims]) => ({ state, claims })),
        label: (row) => stateName(row.state), value: pick("claims"), text: number }],
    sheets: [{ title: "Month over month", of: (d) => d.month_over_month, keyOf: month, columns: [text("month", "Month"), ...money3,
      amount("change_pct", "Change", points)] }],
  },
  {
    name: "quick-stats", title: "Quick stats", about: "Month to date.",
    figures: (d) => [["Revenue", money(d.total_revenue)], ["Claims", number(d.claims_count)],
      ["Collection rate", percent(d.collection_rate)], ["As of", calendarDate(String(d.as_of).slice(0, 10))]],
    sheets: [],
  },
  {
    name: "monthly-trend", title: "Monthly trend", about: "Twelve months, each compared with the previous one.",
    charts: [{ kind: "time", title: "Revenue and payments by month", of: (d) => d.results, label: month, value: pick("revenue"),
      name: "Revenue", second: { name: "Collected", value: pick("collected") } }],
    sheets: [{ title: "Months", of: (d) => d.results, keyOf: month, columns: [text("month", "Month"), ...money3,
      share("growth_rate", "Growth")] }],
  },
  {
    name: "revenue", title: "Revenue", about: "Billed and paid amounts by code, payer, provider and period.",
    figures: (d) => [["Revenue", money(d.total_revenue)], ["Collected", money(d.collected_revenue)],
      ["Open, submitted", money(d.open_submitted)], ["Open, not submitted", money(d.open - d.open_submitted)]],
    charts: [{ kind: "time", title: "Revenue and payments over time", of: (d) => d.by_period, label: pick("period"), value: pick("revenue"),
      name: "Revenue", second: { name: "Collected", value: pick("collected") } },
      { kind: "bars", title: "Revenue by code", of: (d) => d.by_cpt, label: pick("cpt_code"), value: pick("revenue") },
      { kind: "bars", title: "Revenue by payer", of: (d) => d.by_payer, label: pick("payer"), value: pick("revenue") }],
    sheets: [
      { title: "By code", of: (d) => d.by_cpt, keyOf: pick("cpt_code"), columns: [text("cpt_code", "Code"), count("units", "Units"),
        ...money3] },
      { title: "By payer", of: (d) => d.by_payer, keyOf: pick("payer"), columns: [text("payer", "Payer"), ...money3] },
      { title: "By provider", of: (d) => d.by_provider, keyOf: (row) => `${row.provider_id}`,
        columns: [text("provider", "Provider", (value) => value || "None"), ...money3] },
      { title: "By period", of: (d) => d.by_period.filter((/** @type {any} */ row) => row.claims > 0 || row.collected > 0),
        keyOf: pick("period"), columns: [text("period", "Period"), ...money3] },
    ],
  },
  {
    name: "claims-status", title: "Claims by state", about: "Number and amount of claims in each state.",
    figures: (d) => [["Claims", number(d.total_claims)], ["Amount", money(d.total_amount)]],
    charts: [{ kind: "bars", title: "Amount by state", of: (d) => d.results, label: (row) => stateName(row.lifecycle_status),
      value: pick("amount") }],
    sheets: [{ title: "States", of: (d) => d.results, keyOf: pick("lifecycle_status"),
      columns: [text("lifecycle_status", "State", stateName), count("claims", "Claims"), amount("amount", "Amount"),
      text("oldest_service_date", "Oldest service", calendarDate)] }],
  },
  {
    name: "tasks-summary", title: "Tasks", about: "Open billing tasks.",
    figures: (d) => [["To review", number(d.pending_reviews)], ["To submit", number(d.submission_backlog)],
      ["Denied, to resubmit", number(d.denied_awaiting_resubmission)],
      ["To attest", number(d.attestation_needed)], ["Void requested", number(d.void_requested)],
      ["Refund due", number(d.refund_due)], ["Overpaid", number(d.credits)], ["Evidence changed", number(d.evidence_changed)],
      ["Open balances", number(d.open_balances)], ["Unposted remittances", number(d.unposted_remittances)],
      ["Fee list of the year", d.missing_fee_list > 0 ? `To import: ${d.missing_fee_codes.join(", ")}` : "–"],
      ["Billing rules of the year", d.missing_rules > 0 ? "Update Vigil" : "–"],
      ["Diagnosis codes of the year", d.missing_code_list > 0 ? "To import" : "–"],
      ["Secondary claims due", number(d.secondary_due)],
      ["Oldest task", d.oldest_pending_days === null ? "–" : `${d.oldest_pending_days} days`]],
    sheets: [{ title: "Tasks", of: (d) => d.items, keyOf: (row) => row.entry_id + row.task,
      columns: [link("Patient", pick("patient_name"), (row) => go("entry", { id: row.entry_id })), text("task", "Task", humanize),
      text("cpt_code", "Code"), count("age_days", "Days")] }],
  },
  {
    name: "unbilled", title: "Unbilled activity", about: "Readings and time that are not billed, with reasons.",
    figures: (d) => [["Periods", number(d.count)], ["Estimated", money(d.total_estimated_amount)]],
    sheets: [{ title: "Unbilled", of: (d) => d.results, keyOf: (row) => row.patient_id + row.cpt_code + row.period_start,
      columns: [patient, text("cpt_code", "Code"), { name: "period", head: "Period", cell: (row) =>
      `${calendarDate(row.period_start)} – ${calendarDate(row.period_end)}` },
      count("transmission_days", "Days"), count("minutes", "Minutes"), text("reason", "Reason", humanize), amount("estimated_amount",
        "Estimated")] }],
  },
  {
    name: "aging", title: "Aging of open claims", about: "Time since submission of open claims.",
    figures: (d) => [["Open", money(d.total_open)], ["Expected", money(d.total_amount)],
      ["As of", calendarDate(String(d.as_of).slice(0, 10))]],
    charts: [{ kind: "bars", title: "Open amount by days since submission", of: (d) => d.buckets, label: (row) => `${row.bucket} days`,
      value: pick("open") }],
    sheets: [
      { title: "By age", of: (d) => d.buckets, keyOf: pick("bucket"), columns: [text("bucket", "Days"), count("claims", "Waiting"),
        amount("amount", "Expected"), amount("open", "Open")] },
      { title: "By payer", of: (d) => d.by_payer, keyOf: pick("payer"), columns: [text("payer", "Payer"), count("claims", "Waiting"),
        amount("amount", "Expected"), amount("open", "Open")] },
    ],
  },
  {
    name: "payer-performance", title: "Payers", about: "Approval rates and days to payment by payer.",
    charts: [{ kind: "bars", title: "Approval rate", of: (d) => d.results, label: pick("payer"), value: pick("approval_rate"),
      text: percent }],
    sheets: [{ title: "Payers", of: (d) => d.results, keyOf: pick("payer"), columns: [text("payer", "Payer"),
      count("submitted", "Submitted"), count("paid", "Paid"), count("denied", "Denied"), share("approval_rate", "Approved"),
      share("denial_rate", "Denial rate"),
      count("avg_days_to_payment", "Days to payment"), text("common_denial_reasons", "Common denials", (reasons) =>
        reasons.map((/** @type {any} */ r) => `${r.code} ${r.description} (${r.count})`).join("; ") || "–")] }],
  },
  {
    name: "patient-summary", title: "Patients", about: "Billed amounts by patient.", paged: true,
    sheets: [
      { title: "Patients", of: (d) => d.results, keyOf: pick("patient_id"), columns: [patient, amount("lifetime_revenue", "Revenue"),
        amount("collected", "Collected"), count("claims", "Claims"), text("last_service_date", "Last service", calendarDate),
        text("eligible", "Eligible", (value) => (value ? "Yes" : "No"))] },
      { title: "History", of: (d) => d.results.flatMap((/** @type {any} */ row) => row.history ?? []), keyOf: (row) =>
        row.cpt_code + row.service_date + row.status, columns: [text("cpt_code", "Code"), text("service_date", "Service date",
        calendarDate), amount("amount", "Amount"), text("status", "State", stateName)] },
    ],
  },
  {
    name: "cpt-utilization", title: "Code utilization", about: "Volume and payment of each code.",
    charts: [{ kind: "bars", title: "Entries by code", of: (d) => d.results, label: pick("cpt_code"), value: pick("volume"),
      text: number }],
    sheets: [{ title: "Codes", of: (d) => d.results, keyOf: pick("cpt_code"), columns: [text("cpt_code", "Code"),
      count("volume", "Entries"), count("units", "Units"), amount("revenue", "Revenue"), amount("avg_reimbursement", "Mean payment"),
      share("denial_rate", "Denied")] }],
  },
  {
    name: "provider-productivity", title: "Providers", about: "Patients, claims and time of each provider.",
    charts: [{ kind: "bars", title: "Revenue by provider", of: (d) => d.results, label: (row) => row.provider || "None",
      value: pick("revenue") }],
    sheets: [{ title: "Providers", of: (d) => d.results, keyOf: (row) => `${row.provider_id}`,
      columns: [text("provider", "Provider", (value) => value || "None"), count("patients_managed", "Patients"), count("claims", "Claims"),
      amount("revenue", "Revenue"), amount("revenue_per_patient", "Per patient"), count("interactive_minutes", "Interactive minutes")] }],
  },
];
