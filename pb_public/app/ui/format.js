// Formats for display: times in the reader's zone, money in dollars, codes as words.
import { language } from "../language.js";
import { zone } from "./zone.js";

/** A formatter of times; of is another zone than the reader's. Formats are cached by language and zone, because creating one is slow.
 *  @param {Intl.DateTimeFormatOptions} options */
function stamp(options) {
  const made = new Map();
  return (/** @type {string | null | undefined} */ at, /** @type {unknown} */ of = "") => {
    if (!at) {
      return "–";
    }
    const where = typeof of === "string" && of ? of : zone();
    const key = `${language.value} ${where}`;
    const format = made.get(key)
      ?? new Intl.DateTimeFormat(language.value === "en" ? undefined : "es-US", { ...options, timeZone: where });
    made.set(key, format);
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

const minute = 60_000;
const hour = 60 * minute;

/** How long ago a time was, in whole units: "now" (also for a device with a fast clock), "4 min", "3 h", "1 day", "12 days".
 *  @param {string | null | undefined} at @param {number} now milliseconds */
export function ageText(at, now = Date.now()) {
  if (!at) {
    return "never";
  }
  const past = now - Date.parse(at);
  if (past < hour) {
    return past < minute ? "now" : `${Math.floor(past / minute)} min`;
  }
  const days = Math.floor(past / (24 * hour));
  return days === 0 ? `${Math.floor(past / hour)} h` : days === 1 ? "1 day" : `${days} days`;
}

/** "4 min ago", "now", "never". @param {string | null | undefined} at */
export function ago(at) {
  const text = ageText(at);
  return text === "now" || text === "never" ? text : `${text} ago`;
}

export const money = (/** @type {number | null | undefined} */ amount) =>
  amount === null || amount === undefined ? "–" : new Intl.NumberFormat(undefined, { style: "currency", currency: "USD" }).format(amount);
export const percent = (/** @type {number | null | undefined} */ fraction) =>
  fraction === null || fraction === undefined ? "–"
    : new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 }).format(fraction);
export const number = (/** @type {number | null | undefined} */ n) =>
  (n === null || n === undefined ? "–" : new Intl.NumberFormat().format(n));
/** "1 alert", "1,200 alerts". @param {number} n @param {string} one @param {string} [many] */
export const countOf = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;
export const minutes = (/** @type {number} */ n) => `${number(n)} min`;

/** "waiting_for_review" as words, in US spelling. @param {string | null | undefined} code */
export const humanize = (code) => (code ? (code.charAt(0).toUpperCase() + code.slice(1)).replaceAll("_", " ").replace("ancelled", "anceled")
  .replace("nrolment", "nrollment") : "–");
