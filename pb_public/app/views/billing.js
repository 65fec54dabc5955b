// Billing: month's end, nearly billable patients, entries and claims. Clinicians see entries and eligibility; amounts, claim steps and
// payers are for billing staff.
import { get } from "../api.js";
import { can } from "../permissions.js";
import { useQuery } from "../query.js";
import { go } from "../router.js";
import { number } from "../ui/format.js";
import { Loaded, useLoad } from "../ui/states.js";
import { zoneShort } from "../ui/time.js";
import { Tabs } from "../ui/tabs.js";
import { html, useState } from "../view.js";
import { Eligibility } from "./billing/eligibility.js";
import { Entries } from "./billing/entries.js";
import { ExportClaims } from "./billing/exports.js";
import { Fees } from "./billing/fees.js";
import { BatchFiles, Responses } from "./billing/claim_files.js";
import { monthName } from "./billing/month/funnel.js";
import { MinutesRule } from "./billing/minutes_rule.js";
import { MonthEnd } from "./billing/month_end.js";
import { NearBillable } from "./billing/almost_billable.js";
import { Payers } from "./billing/payers.js";
import { Denials } from "./billing/denials.js";
import { Remittances } from "./billing/remittances.js";
import { RunBilling } from "./billing/run_billing.js";
import { SelfAudit } from "./billing/self_audit.js";

export function Billing() {
  return can("readRevenue") ? html`<${Office} />` : html`<div class="heading"><h1>Billing</h1></div>
    <${Tabs} label="Billing" tabs=${[entries(0), near, eligibility]} />`;
}

const near = { key: "near", name: "Almost billable", show: () => html`<${NearBillable} />` };
const eligibility = { key: "eligibility", name: "Eligibility", show: () => html`<${Eligibility} />` };
const entries = (/** @type {number} */ turn) => ({ key: "entries", name: "Entries", show: () => html`<${Entries} turn=${turn} />` });

/** The billing views for billing staff. */
function Office() {
  const [query, setQuery] = useQuery({ month: "", tab: "month" });
  const [revision, setRevision] = useState(0);
  const [dialog, setDialog] = useState(/** @type {"" | "run" | "export"} */ (""));
  const changed = () => setRevision((n) => n + 1);
  const funnel = useLoad((signal) => get("billing/funnel/", { month: query.month }, signal), [query.month, revision]);
  const audit = useLoad((signal) => get("billing/self-audit/", { month: query.month }, signal), [query.month, revision]);
  const month = funnel.data?.month ?? query.month;
  const monthly = query.tab === "month" || query.tab === "audit";
  const toAudit = () => go("billing", {}, { ...(query.month ? { month: query.month } : {}), tab: "audit" });
  return html`<div class="heading money-head"><h1><span class=${month && monthly ? "unseen" : ""}>Billing</span>
        ${month && monthly && html`<span class="unseen">, </span>${monthName(month)}`}</h1>
      ${month && monthly && html`<${Months} month=${month} now=${funnel.data}
        turn=${(/** @type {string} */ to) => setQuery({ month: to })} />`}
      <span class="spread"></span>
      ${audit.data?.findings.length > 0 && query.tab !== "audit" && html`<button type="button" onClick=${toAudit}>Self-audit${" "}
        <span class="mark warning" aria-hidden="true">◆</span> ${number(audit.data.findings.length)}</button>`}
      <button type="button" onClick=${() => setDialog("export")}>Export reviewed</button>
      ${can("manageBilling") && html`<button type="button" onClick=${() => setDialog("run")}>Run billing</button>`}</div>
    <${Tabs} label="Billing" tabs=${[
      { key: "month", name: "Month’s end", show: () => html`<${Loaded} from=${funnel}>
        ${(data) => html`<${MonthEnd} month=${data.month} funnel=${data} turn=${revision} changed=${changed} />`}</${Loaded}>` },
      near, entries(revision),
      { key: "batches", name: "Batches", show: () => html`<${BatchFiles} turn=${revision} />` },
      { key: "responses", name: "Responses", show: () => html`<${Responses} turn=${revision} changed=${changed} />` },
      { key: "denials", name: "Denials", show: () => html`<${Denials} turn=${revision} />` },
      { key: "remittances", name: "Remittances", show: () => html`<${Remittances} turn=${revision} />` },
      eligibility,
      { key: "audit", name: "Self-audit", show: () => html`<${SelfAudit} month=${month} />` },
      { key: "payers", name: "Payers and fees", show: () => html`<${Payers} /><${Fees} /><${MinutesRule} />` },
    ]} />
    ${dialog === "run" && html`<${RunBilling} close=${() => setDialog("")} done=${changed} />`}
    ${dialog === "export" && html`<${ExportClaims} close=${() => setDialog("")} />`}`;
}

/** @param {string} month @param {number} by */
function other(month, by) {
  const [year, of] = month.split("-").map(Number);
  return new Date(Date.UTC(year, of - 1 + by, 1)).toISOString().slice(0, 7);
}

/** Selects the month; shows its remaining days and the calendar's zone.
 *  @param {{month: string, now: any, turn: (month: string) => void}} props */
function Months({ month, now, turn }) {
  const name = (/** @type {string} */ of) => monthName(of, { month: "short" });
  const left = now?.days_left ?? 0;
  const [before, after] = [other(month, -1), other(month, 1)];
  return html`<div class="segments" role="group" aria-label="Month">
      <button type="button" aria-label=${`Earlier: ${monthName(before)}`} onClick=${() => turn(before)}>‹ ${name(before)}</button>
      <button type="button" aria-pressed="true">${name(month)}</button>
      <button type="button" aria-label=${`Later: ${monthName(after)}`} onClick=${() => turn(after)}>${name(after)} ›</button></div>
    <small class="soft">${left > 0 && `${number(left)} ${left === 1 ? "day" : "days"} left, including today. `}
      ${`Service dates in the practice’s time zone, ${now ? zoneShort(now.time_zone) : ""}`}</small>`;
}
