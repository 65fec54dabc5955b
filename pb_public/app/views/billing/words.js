// The words of billing for people.
import { words } from "../../ui/format.js";

export const states = /** @type {[string, string][]} */ ([["", "All but voided"], ["pending_review", "To be reviewed"],
  ["reviewed", "Reviewed, to be submitted"], ["submitted", "Submitted"],
  ["paid", "Paid"], ["denied", "Denied"], ["appealed", "Appealed"], ["void_requested", "To be voided by the payer"],
  ["refund_due", "To be paid back"], ["refunded", "Paid back"], ["voided", "Voided"]]);

/** @param {string} state */
export const stateName = (state) => states.find(([code]) => code === state && code)?.[1] ?? words(state);

const answers = /** @type {[string, string][]} */ ([["paid", "paid"], ["denied", "denied"], ["sent_back", "sent back"],
  ["voided", "voided"],
  ["sent_again", "sent again"], ["open", "not decided"]]);

/** What came of the lines of a file, in words. @param {Record<string, number>} counts */
export const answersIn = (counts) => answers.filter(([name]) => counts[name] > 0).map(([name, said]) => `${counts[name]} ${said}`)
  .join(", ");

const warnings = {
  attest_interaction: "The minutes come from an escalation: who spent them, or a clinical manager, confirms in the patient's time log"
    + " that there was contact.",
  possible_duplicate: "There is another entry like it.",
  before_enrolment: "The service is from before the patient was enrolled.",
  missing_primary_code: "The code adds to another one that is missing.",
  overlaps_99457: "The minutes overlap those of 99457.",
  unknown_icd10: "A diagnosis code is not in the list.",
  missing_consent: "There is no consent in force: record one with the patient, then review.",
  missing_setup: "The set-up of a device is not recorded.",
  missing_diagnosis: "There is no diagnosis.",
  missing_note: "The time has no note.",
  missing_order: "Nobody's order of monitoring is on record.",
  missing_provider: "Nobody is named who rendered the service.",
  no_device_data: "No device sent anything in the period.",
  days_below_minimum: "The days with data are too few.",
  minutes_below_minimum: "The minutes on record are too few.",
  not_interactive: "There are minutes, but not of live contact.",
  overlapping_time: "Its minutes count elsewhere already.",
  evidence_changed: "What it was billed for does not hold any more.",
  competing_service: "Another practice or program bills remote monitoring for the patient: say why this is billed beside it.",
  rejected_999: "The clearinghouse could not read the file.",
  rejected_277ca: "The clearinghouse or payer sent the claim back.",
};

/** @param {string} code */
export const warningText = (code) => warnings[code] ?? words(code);

const patterns = {
  no_established_visit: "No visit before billing", supply_without_management: "Supply without management",
  enrolment_spike: "Many first bills at once",
  several_devices: "Several devices at once", same_minutes: "The same minutes again and again", late_entry: "Time recorded late",
  impossible_day: "More than a day can hold",
  typed_days: "Days with typed data", competing_service: "Billed beside another practice",
};

/** @param {string} pattern */
export const patternName = (pattern) => patterns[pattern] ?? words(pattern);

/** Codes typed with commas or spaces between. @param {string | null | undefined} text */
export const codesOf = (text) => (text ?? "").split(/[\s,;]+/).filter(Boolean);
