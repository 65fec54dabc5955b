// Helpers for a patient's readings in the patient's zone.
import { localInput } from "../../ui/time.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["Observation"]} Observation */

/** The selectable periods in days: those of the summary. */
export const periods = [7, 30, 90];

export const seconds = (/** @type {Observation} */ o) => Date.parse(o.measured_at) / 1000;

/** Readings with the newest ones replaced or added, oldest first. @param {Observation[]} before @param {Observation[]} newest */
export function mergeReadings(before, newest) {
  const newIds = new Set(newest.map(({ id }) => id));
  return [...before.filter(({ id }) => !newIds.has(id)), ...newest].sort((a, b) => seconds(a) - seconds(b));
}

/** The first date of a number of days that end today, in a zone. @param {string | undefined} zone @param {number} days */
export const daysAgoIn = (zone, days) => localInput(new Date(Date.now() - (days - 1) * 86_400_000), zone).slice(0, 10);

/** Whether a reading is suspect and not retracted. @param {any} o */
export const isSuspect = (o) => o.status === "final" && o.review_state === "suspect";
