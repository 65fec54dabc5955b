// Times for display, with their zone, and conversion of datetime-local fields in the reader's zone.
import { clock, dateTime, day, fullTime } from "./format.js";
import { zone, zoneLong, zoneShort, zoneText } from "./zone.js";
import { html } from "../view.js";

export { zone, zoneLong, zoneShort, zoneText };

const shapes = { dateTime, clock, day };

/** A time, with its full date and zone in the tooltip. of is a zone other than the reader's, such as the patient's; named adds the zone's
 * short name, for a time that stands alone.
 *  @param {{at: string | null | undefined, of?: string, as?: keyof typeof shapes, named?: boolean}} props */
export const When = ({ at, of, as = "dateTime", named = false }) => (at
  ? html`<time datetime=${at} title=${`${fullTime(at, of)} ${zoneLong(of)}`}>${shapes[as](at, of)}${named && ` ${zoneShort(of)}`}</time>`
    : "–");

/** Names the zone of the times in a table or chart.
 *  @param {{of?: string, owner?: string}} props owner such as "the patient's" */
export const ZoneNote = ({ of, owner }) => html`<small class="zone" title=${zoneLong(of)}>${zoneText(of, owner)}</small>`;

/** A time in the format of a datetime-local field, in the reader's zone. @param {Date} [at] @param {string} [of] another zone */
export function localInput(at = new Date(), of = zone()) {
  const parts = Object.fromEntries(new Intl.DateTimeFormat("en-CA", {
    timeZone: of, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23",
  }).formatToParts(at).map(({ type, value }) => [type, value]));
  return `${parts.year}-${parts.month}-${parts.day}T${parts.hour}:${parts.minute}`;
}

/** The instant of a datetime-local field; null when it is empty. @param {string | null | undefined} local
 *  @param {string} [of] another zone */
export function instantOf(local, of = zone()) {
  if (!local) {
    return null;
  }
  const guess = Date.parse(`${local}Z`);
  let at = guess;
  for (let i = 0; i < 2; i++) { // twice, for the hours around a clock change
    at += guess - Date.parse(`${localInput(new Date(at), of)}Z`);
  }
  return new Date(at).toISOString();
}

/** The current month as YYYY-MM, in the reader's zone. */
export const thisMonth = () => localInput().slice(0, 7);
/** Days ago as YYYY-MM-DD, in the reader's zone. @param {number} days */
export const daysAgo = (days) => localInput(new Date(Date.now() - days * 86_400_000)).slice(0, 10);
