// Labels of billing states, warnings and patterns.
import { calendarDate, daysUntil, humanize } from "../../ui/format.js";

export const states = /** @type {[string, string][]} */ ([["", "All except voided"], ["pending_review", "To review"],
  ["reviewed", "Reviewed, ready to submit"], ["submitted", "Submitted"],
  ["paid", "Paid"], ["denied", "Denied"], ["appealed", "Appealed"], ["void_requested", "Void requested"],
  ["refund_due", "Refund due"], ["refunded", "Refunded"], ["voided", "Voided"]]);

/** @param {string} state */
export const stateName = (state) => states.find(([code]) => code === state && code)?.[1] ?? humanize(state);

const answers = /** @type {[string, string][]} */ ([["paid", "paid"], ["denied", "denied"], ["sent_back", "returned"],
  ["voided", "voided"],
  ["sent_again", "resubmitted"], ["open", "pending"]]);

/** The results of a file's lines in words. @param {Record<string, number>} counts */
export const resultsText = (counts) => answers.filter(([name]) => counts[name] > 0).map(([name, label]) => `${counts[name]} ${label}`)
  .join(", ");

const warnings = {
  attest_interaction: "The minutes come from an escalation: the person who logged them, or a clinical manager, must attest in the"
    + " patient's time log that there was live contact.",
  possible_duplicate: "Another entry covers the same service.",
  before_enrolment: "The service was before the patient’s enrollment.",
  missing_primary_code: "The primary code is missing.",
  overlaps_99457: "The minutes overlap those of 99457.",
  paid_before_service: "The payment is dated before the service: check the date.",
  unknown_icd10: "A diagnosis code is not in the list.",
  missing_consent: "No active consent: record the patient’s consent, then review.",
  missing_setup: "Device setup is not recorded.",
  missing_diagnosis: "There is no diagnosis.",
  missing_note: "The time has no note.",
  missing_order: "No order for monitoring on or before the first billed day.",
  missing_provider: "No rendering provider is set.",
  no_device_data: "No device sent data in the period.",
  days_below_minimum: "Too few days with data.",
  minutes_below_minimum: "Too few minutes are logged.",
  not_interactive: "The logged minutes are not live contact.",
  overlapping_time: "Its minutes are counted elsewhere.",
  evidence_changed: "The evidence for this entry has changed.",
  competing_service: "Another practice or program bills remote monitoring for the patient: give a reason to bill this entry.",
  rejected_999: "The clearinghouse could not read the file.",
  rejected_277ca: "The clearinghouse or payer returned the claim.",
};

/** @param {string} code */
export const warningText = (code) => warnings[code] ?? humanize(code);

const patterns = {
  no_established_visit: "No visit before billing", supply_without_management: "Supply without management",
  enrolment_spike: "Many first bills at the same time",
  several_devices: "Several devices at the same time", same_minutes: "Repeated identical minutes", late_entry: "Time recorded late",
  impossible_day: "More than 24 hours in a day",
  typed_days: "Days with manually entered data", competing_service: "Also billed by another practice",
};

/** @param {string} pattern */
export const patternName = (pattern) => patterns[pattern] ?? humanize(pattern);

/** Splits codes separated by commas or spaces. @param {string | null | undefined} text */
export const codesOf = (text) => (text ?? "").split(/[\s,;]+/).filter(Boolean);

/** What to do about a denial. @type {Record<string, string>} */
export const nextSteps = {
  correct_and_resubmit: "Correct and resubmit", new_claim: "Send as a new claim", appeal: "Appeal", write_off: "Write off",
  check_duplicate: "Check for a duplicate",
};

/** Until when the payer takes the next step. @param {{next_step: string, refile_by: string | null, appeal_by: string | null}} denial */
export function dueText(denial) {
  const by = denial.next_step === "appeal" ? denial.appeal_by : denial.refile_by;
  if (denial.next_step === "write_off") {
    return "";
  }
  if (by === null) {
    return "No time limit on record";
  }
  const left = daysUntil(by);
  return left < 0 ? `Too late since ${calendarDate(by)}` : `${left === 1 ? "1 day" : `${left} days`} left, until ${calendarDate(by)}`;
}
