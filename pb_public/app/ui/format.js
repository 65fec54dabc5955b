// Formats for display: times in the reader's zone, money in dollars, codes as words.
import { zone } from "./zone.js";

/** A formatter of times; of is another zone than the reader's. Formats are cached by zone, because creating one is slow.
 *  @param {Intl.DateTimeFormatOptions} options */
function stamp(options) {
  const made = new Map();
  return (/** @type {string | null | undefined} */ at, /** @type {unknown} */ of = "") => {
    if (!at) {
      return "–";
    }
    const where = typeof of === "string" && of ? of : zone();
    const format = made.get(where) ?? new Intl.DateTimeFormat(undefined, { ...options, timeZone: where });
    made.set(where, format);
    return format.format(new Date(at));
  };
}

export const dateTime = stamp({ month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
export const fullTime = stamp({ dateStyle: "medium", timeStyle: "medium" });
export const clock = stamp({ hour: "2-digit", minute: "2-digit" });
export const day = stamp({ year: "numeric", month: "short", day: "numeric" });

/** A calendar date, without a zone. @param {string | null | undefined} date YYYY-MM-DD */
export const calendarDate = (date) =>
  date ? new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric",
    timeZone: "UTC" }).format(new Date(`${date}T00:00:00Z`)) : "–";

/** Days from today, in the browser's zone, to a calendar date; negative after it. @param {string} date YYYY-MM-DD */
export function daysUntil(date) {
  const now = new Date();
  return Math.round((Date.parse(date) - Date.UTC(now.getFullYear(), now.getMonth(), now.getDate())) / 86_400_000);
}

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const steps = /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ ([["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]]);

/** "5 min. ago"; "now" for a time in the future (a device with a fast clock). @param {string | null | undefined} at
 *  @param {number} now milliseconds */
export function ago(at, now = Date.now()) {
  if (!at) {
    return "never";
  }
  const seconds = Math.min((Date.parse(at) - now) / 1000, 0);
  const [unit, size] = steps.find(([, length]) => Math.abs(seconds) >= length) ?? steps[steps.length - 1];
  return relative.format(Math.round(seconds / size), unit);
}

export const money = (/** @type {number | null | undefined} */ amount) =>
  amount === null || amount === undefined ? "–" : new Intl.NumberFormat(undefined, { style: "currency", currency: "USD" }).format(amount);
export const percent = (/** @type {number | null | undefined} */ fraction) =>
  fraction === null || fraction === undefined ? "–"
    : new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 }).format(fraction);
export const number = (/** @type {number | null | undefined} */ n) =>
  (n === null || n === undefined ? "–" : new Intl.NumberFormat().format(n));
export const minutes = (/** @type {number} */ n) => `${number(n)} min`;

/** "waiting_for_review" as words, in US spelling. @param {string | null | undefined} code */
export const humanize = (code) => (code ? (code.charAt(0).toUpperCase() + code.slice(1)).replaceAll("_", " ").replace("ancelled", "anceled")
  .replace("nrolment", "nrollment") : "–");
