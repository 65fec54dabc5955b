// Opens a message: marks it as read and opens its subject.
import { get, post } from "../../api.js";
import { go } from "../../router.js";
import { sectionOf } from "../../sections.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["Notification"]} Message */

/** Opens the subject of a message; null if there is none that the user may open. @param {Message} message */
export function targetOf(message) {
  const patient = message.patient_id;
  const places = /** @type {[any, string, Record<string, any>][]} */ ([
    [message.entry_id, "entry", { id: message.entry_id }],
    [message.escalation_id && patient, "patient", { id: patient, tab: "escalations" }],
    [message.alert_id && patient, "patient", { id: patient, tab: "alerts" }],
    [message.escalation_id, "escalations", {}],
    [message.alert_id, "alerts", {}],
    [patient, "patient", { id: patient }],
    [patient, "my-health", {}],
  ]);
  const found = places.find(([about, view]) => about && sectionOf(view));
  return found ? () => go(found[1], found[2]) : null;
}

/** Opens the subject of a message, or the inbox if it has none or belongs to another user. @param {number} id */
export async function openMessage(id) {
  try {
    const message = await get(`notifications/${id}/`);
    await post(`notifications/${id}/read/`);
    (targetOf(message) ?? (() => go("inbox")))();
  } catch {
    go("inbox"); // the inbox shows the error
  }
}
