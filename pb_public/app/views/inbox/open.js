// Opening a message: it is read, and one is led to what it is about.
import { get, post } from "../../api.js";
import { go } from "../../router.js";
import { sectionOf } from "../../sections.js";

/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["Notification"]} Message */

/** How to get to what a message is about, null when it is about nothing that the caller may open. @param {Message} message */
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

/** Leads to what the message of that number is about, or to the inbox when it is about nothing or is somebody else's. @param {number} id */
export async function openMessage(id) {
  try {
    const message = await get(`notifications/${id}/`);
    await post(`notifications/${id}/read/`);
    (targetOf(message) ?? (() => go("inbox")))();
  } catch {
    go("inbox"); // it says what is wrong
  }
}
