// The zone of displayed times: the account's if set, otherwise the practice's. Not the browser's: a laptop on a trip must not shift
// readings.
import { me, practice } from "../session.js";

/** The IANA name of the display zone. */
export const zone = () => me.value?.time_zone || practice.value.time_zone || undefined;

/** @param {"shortGeneric" | "longGeneric"} style */
const named = (style) => (/** @type {string | undefined} */ of = zone()) =>
  new Intl.DateTimeFormat("en-US", { timeZone: of, timeZoneName: style }).formatToParts(0)
    .find(({ type }) => type === "timeZoneName")?.value ?? of ?? "";

/** "ET": the short name, for column heads. @type {(of?: string) => string} */
export const zoneShort = named("shortGeneric");
/** "Eastern Time". @type {(of?: string) => string} */
export const zoneLong = named("longGeneric");

/** The zone of the times, in words: "All times ET". @param {string} [of] a zone, when it is not the reader's
 *  @param {string} [owner] such as "the patient's" */
export function zoneText(of, owner) {
  const own = me.value?.time_zone && me.value.time_zone !== practice.value.time_zone;
  return `All times ${zoneShort(of)}${owner ? ` (${owner})` : of ? " (local)" : own ? " (yours)" : ""}`;
}
