// Why an entry cannot go on, in words, and where that is put right. The service decides what stands against it; this
// only says it to people.
import { can } from "../../can.js";
import { go } from "../../router.js";
import { words } from "../../ui/format.js";

/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["MonthEndEntry"]} Row */
/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["PreflightFinding"]} Finding */
/** @typedef {{short: string, about: string, mend?: string}} Reason mend is a key of the places below */

/** @type {Record<string, Reason>} */
const reasons = {
  missing_consent: { short: "No consent", about: "No consent to monitoring is in force on the date of service.", mend: "consent" },
  missing_diagnosis: { short: "No diagnosis", about: "Neither the entry nor the patient has a diagnosis.", mend: "patient" },
  missing_setup: { short: "No set-up", about: "The set-up of a device, with the patient taught its use, is not recorded.",
    mend: "devices" },
  missing_order: { short: "No order", about: "Nobody ordered monitoring on or before the date of service.", mend: "order" },
  missing_provider: { short: "No provider", about: "Nobody is named who rendered the service.", mend: "patient" },
  missing_note: { short: "Time without a note", about: "Some of the time that it bills has no note.", mend: "time" },
  missing_primary_code: { short: "Stands alone", about: "It adds to a code that is not billed for the same month.", mend: "bill" },
  not_active: { short: "Not enrolled", about: "The patient was not enrolled on the date of service.", mend: "patient" },
  no_device_data: { short: "No data", about: "No device sent anything in the period.", mend: "readings" },
  days_below_minimum: { short: "Too few days", about: "The days with data of a device are fewer than the code asks for.", mend: "bill" },
  minutes_below_minimum: { short: "Too few minutes", about: "The minutes on record are fewer than the code asks for.", mend: "time" },
  not_interactive: { short: "Not live contact", about: "There are minutes, but not of live contact.", mend: "time" },
  overlapping_time: { short: "Time counted twice", about: "Minutes of it count elsewhere already.", mend: "time" },
  attest_interaction: { short: "To be attested",
    about: "Who spent the minutes of an escalation, or a clinical manager, says that they were contact.", mend: "time" },
  possible_duplicate: { short: "Maybe a duplicate", about: "Another entry covers the same service: say why this one stands, or void it.",
    mend: "entry" },
  competing_service: { short: "Billed elsewhere, too",
    about: "Another practice or program bills remote monitoring for the patient: say why this is billed.", mend: "entry" },
  evidence_changed: { short: "Evidence changed", about: "What it was made of does not hold any more.", mend: "entry" },
  second_person: { short: "Made by you", about: "Somebody else has to review an entry that you made by hand." },
  preflight_errors: { short: "Payer would refuse it", about: "A payer would refuse the claim." },
};

/** @param {string} code @returns {Reason} */
export const reasonOf = (code) => reasons[code] ?? { short: words(code), about: words(code), mend: "entry" };

/** Where a finding of the preflight is put right. @param {Finding} finding */
const placeOf = ({ field }) => (/^VIGIL_/.test(field) ? "operator" : /^users\./.test(field) ? "staff" : /^payer\./.test(field) ? "payers"
  : /^insurance\./.test(field) ? "insurance" : /^(rendering_|icd10|service_date|units|charge|modifiers|original_)/.test(field) ? "entry"
    : "patient");

/** @type {Record<string, {name: string, may: () => boolean, open: (row: Row) => void} | undefined>} */
const places = {
  consent: { name: "Record consent", may: () => can("changeConsents"), open: (row) => sheet(row, "people") },
  order: { name: "Add order", may: () => can("changeConsents"), open: (row) => sheet(row, "people") },
  devices: { name: "Record the set-up", may: () => can("assignDevices"), open: (row) => sheet(row, "devices") },
  time: { name: "Open the time log", may: () => can("readTime"), open: (row) => sheet(row, "time") },
  bill: { name: "Open the calendar", may: () => can("explainBilling"), open: (row) => sheet(row, "bill") },
  readings: { name: "Open the readings", may: () => true, open: (row) => sheet(row, "readings") },
  patient: { name: "Open the patient", may: () => true, open: (row) => sheet(row, "people") },
  insurance: { name: "Open insurance", may: () => true, open: (row) => sheet(row, "overview") },
  payers: { name: "Open the payers", may: () => can("manageBilling"), open: () => go("billing", {}, { tab: "payers" }) },
  staff: { name: "Open the staff", may: () => can("manageUsers"), open: () => go("operations") },
  entry: { name: "Open the entry", may: () => true, open: (row) => go("entry", { id: row.entry_id }) },
};

/** @param {Row} row @param {string} tab */
const sheet = (row, tab) => go("patient", { id: row.patient_id, tab });

/** @typedef {{name: string, open: (row: Row) => void} | null} Mend */
/** @typedef {{code: string, tone: "critical" | "warning", title: string, about: string, mend: Mend, hint: string}} Against */

/** Where something is put right; by a colleague, if that is not for the reader to do. @param {string | undefined} key */
function mendOf(key) {
  const place = places[key ?? ""];
  const open = place && (place.may() ? place : places.patient);
  return { mend: open ? { name: open.name, open: open.open } : null,
    hint: key === "operator" ? "A setting of whoever runs the service." : place && open !== place
      ? "A colleague who may do so puts it right." : "" };
}

/** All that stands against an entry, each with what mends it. @param {Row} row @returns {Against[]} */
export const allAgainst = (row) => [
  ...row.reasons.filter((code) => code !== "preflight_errors").map((code) => {
    const { short, about, mend } = reasonOf(code);
    return { code, tone: /** @type {"warning"} */ ("warning"), title: short, about, ...mendOf(mend) };
  }),
  ...row.preflight_errors.map((finding) => ({
    code: finding.code, tone: /** @type {"critical" | "warning"} */ (row.reasons.includes("preflight_errors") ? "critical" : "warning"),
      title: "Payer", about: finding.message, ...mendOf(placeOf(finding)),
  })),
];

/** What an entry counts under among those that are held back: its first reason. @param {Row} row */
export function mainReason(row) {
  const [first] = row.reasons;
  return first === "preflight_errors" ? `payer:${row.preflight_errors[0]?.code ?? ""}` : first ?? "";
}

/** @param {string} key of mainReason */
export const mainWords = (key) => (key.startsWith("payer:") ? words(key.slice(6)) : reasonOf(key).short);

/** The state of an entry in a line. @param {Row} row */
export function stateWords(row) {
  const facts = row.reasons.filter((code) => code !== "preflight_errors").map((code) => reasonOf(code).short);
  const payer = row.reasons.includes("preflight_errors") ? row.preflight_errors.length : 0;
  if (facts.length > 0 || payer > 0) {
    return [facts[0], facts.length > 1 && `${facts.length - 1} more`, payer > 0 && `${payer} for the payer`].filter(Boolean).join(", ");
  }
  return ["Ready", row.becomes_code !== row.cpt_code && `becomes ${row.becomes_code}`, row.facts.payer === "self_pay"
    && "self-pay"].filter(Boolean).join(", ");
}

/** Things by what they have in common, in the order in which each came first.
 *  @template T @param {T[]} list @param {(one: T) => string} keyOf @returns {[string, T[]][]} */
export function groupsOf(list, keyOf) {
  const groups = new Map();
  for (const one of list) {
    groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one]);
  }
  return [...groups];
}

/** Amounts in dollars, added up in cents. @template T @param {T[]} list @param {(one: T) => number} of */
export const sumOf = (list, of) => list.reduce((sum, one) => sum + Math.round(of(one) * 100), 0) / 100;
/** @param {{amount: number}} one */
export const amountOf = (one) => one.amount;
