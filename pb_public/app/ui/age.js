// A person's age and sex, and how long ago something was, in one form for all views.
import { localInput } from "./time.js";

/** Full years since a calendar date, in a zone. @param {string | null | undefined} born @param {string} [zone] @param {Date} [now] */
export function yearsSince(born, zone, now = new Date()) {
  if (!born) {
    return null;
  }
  const [year, month, date] = born.split("-").map(Number);
  const [thisYear, thisMonth, today] = localInput(now, zone).slice(0, 10).split("-").map(Number);
  return thisYear - year - (thisMonth > month || (thisMonth === month && today >= date) ? 0 : 1);
}

const letters = { male: "M", female: "F", other: "other" };

/** "78 F". @param {{date_of_birth?: string | null, gender?: string | null} | null | undefined} person @param {string} [zone] */
export const ageAndSex = (person, zone) => [yearsSince(person?.date_of_birth, zone), letters[person?.gender ?? ""]]
  .filter((part) => part !== null && part !== undefined).join(" ");
