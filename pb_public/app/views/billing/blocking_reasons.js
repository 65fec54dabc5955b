// Why an entry is blocked, and where to fix it. The server decides the reasons; this module has their texts.
import { can } from "../../permissions.js";
import { go } from "../../router.js";
import { humanize } from "../../ui/format.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["MonthEndEntry"]} Row */
/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["PreflightFinding"]} Finding */
/** @typedef {{short: string, about: string, mend?: string}} Reason mend is a key of places */

/** @type {Record<string, Reason>} */
const reasons = {
  missing_consent: { short: "No consent", about: "No active consent to monitoring on the date of service.", mend: "consent" },
  missing_diagnosis: { short: "No diagnosis", about: "Neither the entry nor the patient has a diagnosis.", mend: "patient" },
  missing_setup: { short: "No setup", about: "Device setup and patient education are not recorded.",
    mend: "devices" },
  missing_order: { short: "No order", about: "No order for monitoring on or before the first billed day.", mend: "order" },
  missing_provider: { short: "No provider", about: "No rendering provider is set.", mend: "patient" },
  missing_note: { short: "Time without a note", about: "Some billed time has no note.", mend: "time" },
  missing_primary_code: { short: "Primary code missing", about: "Its primary code is not billed for the same month.", mend: "bill" },
  not_active: { short: "Not enrolled", about: "The patient was not enrolled on the date of service.", mend: "patient" },
  no_device_data: { short: "No data", about: "No device sent data in the period.", mend: "readings" },
  days_below_minimum: { short: "Too few days", about: "Fewer days with device data than the code requires.", mend: "bill" },
  minutes_below_minimum: { short: "Too few minutes", about: "Fewer minutes are logged than the code requires.", mend: "time" },
  not_interactive: { short: "Not live contact", about: "The logged minutes are not live contact.", mend: "time" },
  overlapping_time: { short: "Time counted twice", about: "Some of its minutes are counted elsewhere.", mend: "time" },
  attest_interaction: { short: "Needs attestation",
    about: "The person who logged the escalation’s minutes, or a clinical manager, must attest that they were live contact.",
    mend: "time" },
  possible_duplicate: { short: "Possible duplicate",
    about: "Another entry covers the same service: give a reason to keep this one, or void it.",
    mend: "entry" },
  frequency_limit: { short: "Billed already",
    about: "Other entries bill the code as often as its period allows: void this one.", mend: "entry" },
  excluded_pair: { short: "Not together",
    about: "The code is not billed together with that of another entry in this period: void one of them.", mend: "entry" },
  days_above_maximum: { short: "Too many days",
    about: "More days have data than the code is for: void this entry and add the right code.", mend: "entry" },
  minutes_above_maximum: { short: "Too many minutes",
    about: "More minutes count than the code is for: void this entry and add the right code.", mend: "entry" },
  competing_service: { short: "Billed elsewhere",
    about: "Another practice or program bills remote monitoring for the patient: give a reason to bill this entry.", mend: "entry" },
  evidence_changed: { short: "Evidence changed", about: "The evidence for this entry has changed.", mend: "entry" },
  second_person: { short: "Added by you", about: "Another person must review a charge that you added manually." },
  preflight_errors: { short: "Payer would reject", about: "The payer would reject the claim." },
};

/** @param {string} code @returns {Reason} */
export const reasonOf = (code) => reasons[code] ?? { short: humanize(code), about: humanize(code), mend: "entry" };

/** The place where a preflight finding is fixed. @param {Finding} finding */
const placeOf = ({ field }) => (/^VIGIL_/.test(field) ? "operator" : /^users\./.test(field) ? "staff" : /^payer\./.test(field) ? "payers"
  : /^insurance\./.test(field) ? "insurance" : /^(rendering_|icd10|service_date|units|charge|modifiers|original_)/.test(field) ? "entry"
    : "patient");

/** @type {Record<string, {name: string, isAllowed: () => boolean, open: (row: Row) => void} | undefined>} */
const places = {
  consent: { name: "Record consent", isAllowed: () => can("changeConsents"), open: (row) => sheet(row, "people") },
  order: { name: "Add order", isAllowed: () => can("changeConsents"), open: (row) => sheet(row, "people") },
  devices: { name: "Record setup", isAllowed: () => can("assignDevices"), open: (row) => sheet(row, "devices") },
  time: { name: "Open time log", isAllowed: () => can("readTime"), open: (row) => sheet(row, "time") },
  bill: { name: "Open calendar", isAllowed: () => can("explainBilling"), open: (row) => sheet(row, "bill") },
  readings: { name: "Open readings", isAllowed: () => true, open: (row) => sheet(row, "readings") },
  patient: { name: "Open patient", isAllowed: () => true, open: (row) => sheet(row, "people") },
  insurance: { name: "Open insurance", isAllowed: () => true, open: (row) => sheet(row, "overview") },
  payers: { name: "Open payers", isAllowed: () => can("manageBilling"), open: () => go("billing", {}, { tab: "payers" }) },
  staff: { name: "Open staff", isAllowed: () => can("manageUsers"), open: () => go("operations") },
  entry: { name: "Open entry", isAllowed: () => true, open: (row) => go("entry", { id: row.entry_id }) },
};

/** @param {Row} row @param {string} tab */
const sheet = (row, tab) => go("patient", { id: row.patient_id, tab });

/** @typedef {{name: string, open: (row: Row) => void} | null} Mend */
/** @typedef {{code: string, tone: "critical" | "warning", title: string, about: string, mend: Mend, hint: string}} Against */

/** The button that leads to the fix; a hint if the user may not do it. @param {string | undefined} key */
function fixOf(key) {
  const place = places[key ?? ""];
  const open = place && (place.isAllowed() ? place : places.patient);
  return { mend: open ? { name: open.name, open: open.open } : null,
    hint: key === "operator" ? "A server setting: contact the system administrator." : place && open !== place
      ? "A colleague with permission must fix this." : "" };
}

/** All reasons that block an entry, each with its fix. @param {Row} row @returns {Against[]} */
export const blockersOf = (row) => [
  ...row.reasons.filter((code) => code !== "preflight_errors").map((code) => {
    const { short, about, mend } = reasonOf(code);
    return { code, tone: /** @type {"warning"} */ ("warning"), title: short, about, ...fixOf(mend) };
  }),
  ...row.preflight_errors.map((finding) => ({
    code: finding.code, tone: /** @type {"critical" | "warning"} */ (row.reasons.includes("preflight_errors") ? "critical" : "warning"),
      title: "Payer", about: finding.message, ...fixOf(placeOf(finding)),
  })),
];

/** The group of a blocked entry: its first reason. @param {Row} row */
export function mainReason(row) {
  const [first] = row.reasons;
  return first === "preflight_errors" ? `payer:${row.preflight_errors[0]?.code ?? ""}` : first ?? "";
}

/** @param {string} key of mainReason */
export const mainText = (key) => (key.startsWith("payer:") ? humanize(key.slice(6)) : reasonOf(key).short);

/** The state of an entry in one line. @param {Row} row */
export function stateText(row) {
  const facts = row.reasons.filter((code) => code !== "preflight_errors").map((code) => reasonOf(code).short);
  const payer = row.reasons.includes("preflight_errors") ? row.preflight_errors.length : 0;
  if (facts.length > 0 || payer > 0) {
    return [facts[0], facts.length > 1 && `${facts.length - 1} more`, payer > 0 && `${payer} payer errors`].filter(Boolean).join(", ");
  }
  return ["Ready", row.becomes_code !== row.cpt_code && `becomes ${row.becomes_code}`, row.facts.payer === "self_pay"
    && "self-pay"].filter(Boolean).join(", ");
}

/** Groups a list by key, in the order of first occurrence.
 *  @template T @param {T[]} list @param {(one: T) => string} keyOf @returns {[string, T[]][]} */
export function groupsOf(list, keyOf) {
  const groups = new Map();
  for (const one of list) {
    groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one]);
  }
  return [...groups];
}

/** The sum of dollar amounts, computed in cents. @template T @param {T[]} list @param {(one: T) => number} of */
export const sumOf = (list, of) => list.reduce((sum, one) => sum + Math.round(of(one) * 100), 0) / 100;
/** @param {{amount: number}} one */
export const amountOf = (one) => one.amount;
