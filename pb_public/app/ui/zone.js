// The zone that times are shown in: the reader's own if the account has one, else the practice's. Never the browser's by accident: a laptop
// on a journey must not move a reading.
import { me, practice } from "../session.js";

/** The IANA name of the zone that times are shown in. */
export const zone = () => me.value?.time_zone || practice.value.time_zone || undefined;

/** @param {"shortGeneric" | "longGeneric"} style */
const named = (style) => (/** @type {string | undefined} */ of = zone()) =>
  new Intl.DateTimeFormat("en-US", { timeZone: of, timeZoneName: style }).formatToParts(0)
    .find(({ type }) => type === "timeZoneName")?.value ?? of ?? "";

/** "ET": the zone in a word, for heads of columns. @type {(of?: string) => string} */
export const zoneShort = named("shortGeneric");
/** "Eastern Time". @type {(of?: string) => string} */
export const zoneLong = named("longGeneric");

/** Whose times these are, in words: "Times are yours, ET". @param {string} [of] a zone, when it is not the reader's
 *  @param {string} [whose] such as "the patient's" */
export function zoneWords(of, whose) {
  const own = me.value?.time_zone && me.value.time_zone !== practice.value.time_zone;
  return `Times are ${whose ?? (of ? "local" : own ? "yours" : "the practice’s")}, ${zoneShort(of)}`;
}
