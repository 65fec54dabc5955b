// Moments that people type: a date and a time in the reader's own zone, and the instant that the service wants.
import { me } from "../session.js";

const zone = () => me.value?.time_zone || undefined;

/** A moment as a datetime-local field has it, in the reader's zone. @param {Date} [at] */
export function localOf(at = new Date()) {
  const parts = Object.fromEntries(new Intl.DateTimeFormat("en-CA", {
    timeZone: zone(), year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23",
  }).formatToParts(at).map(({ type, value }) => [type, value]));
  return `${parts.year}-${parts.month}-${parts.day}T${parts.hour}:${parts.minute}`;
}

/** The instant that a datetime-local field means; null when it is empty. @param {string | null | undefined} local */
export function instantOf(local) {
  if (!local) {
    return null;
  }
  const guess = Date.parse(`${local}Z`);
  let at = guess;
  for (let i = 0; i < 2; i++) { // twice, for the hours beside a change of clocks
    at += guess - Date.parse(`${localOf(new Date(at))}Z`);
  }
  return new Date(at).toISOString();
}

/** The current month as YYYY-MM, in the reader's zone. */
export const thisMonth = () => localOf().slice(0, 7);
/** Days ago as YYYY-MM-DD, in the reader's zone. @param {number} days */
export const daysAgo = (days) => localOf(new Date(Date.now() - days * 86_400_000)).slice(0, 10);
