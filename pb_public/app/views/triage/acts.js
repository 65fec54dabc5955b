// What is done about a patient of the list, with one key or one press.
import { get, patch, post, Problem } from "../../api.js";
import { can, canAcknowledge } from "../../can.js";
import { stream } from "../../live.js";
import { me } from "../../session.js";
import { asProblem } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";

/** @typedef {import("./order.js").Row} Row */
/** @typedef {import("../alerts/acts.js").Alert} Alert */

/** The unacknowledged alerts of a patient, the newest first. @param {string} patientID @returns {Promise<Alert[]>} */
export const openAlerts = async (patientID) => (await get("alerts/", { patient_id: patientID, acknowledged: false, page_size: 100 })).results;

const count = (/** @type {number} */ n) => (n === 1 ? "One alert" : `${n} alerts`);

/**
 * Acknowledges alerts one after the other, with the same note in each. What fails says how far it came.
 * @param {Alert[]} alerts @param {string} [note]
 * @returns {Promise<{text: string, left: number}>} left are those that another has to answer
 */
export async function acknowledge(alerts, note = "") {
  const mine = alerts.filter(canAcknowledge);
  if (mine.length === 0) {
    throw new Problem(0, { detail: alerts.length ? "Critical alerts are for a nurse or provider." : "No open alert." });
  }
  let done = 0;
  for (const alert of mine) {
    try {
      await post(`alerts/${alert.id}/acknowledge/`, note ? { clinical_note: note } : {});
      done++;
    } catch (error) {
      const { message } = asProblem(error);
      throw new Problem(0, { detail: done === 0 ? message : `${done} of ${mine.length} acknowledged, then: ${message}` });
    }
  }
  const left = alerts.length - mine.length;
  return { text: `${count(done)} acknowledged${left > 0 ? `, ${left} critical left for a nurse or provider` : ""}.`, left };
}

/** @param {Row} row @param {string} [note] */
export async function review(row, note = "") {
  if (!can("review")) {
    throw new Problem(0, { detail: "Reviews are for nurses and providers." });
  }
  await post(`triage/patients/${row.patient_id}/review/`, note ? { notes: note } : {});
  return "Reviewed.";
}

const takers = ["provider", "nurse", "clinical_manager", "admin"];

/** The most urgent escalation that the reader may take: what somebody works on stays theirs. @param {any[]} escalations */
export function takable(escalations) {
  const urgency = ["stat", "urgent", "routine"];
  const mine = can("changeEscalation") && takers.includes(me.value?.role ?? "");
  return escalations.filter((e) => mine && e.status === "open").sort((a, b) => urgency.indexOf(a.priority) - urgency.indexOf(b.priority))[0];
}

/** Takes an escalation, also one that somebody else was told of. @param {any} escalation */
export async function take(escalation) {
  const mail = me.value?.email;
  await patch(`escalations/${escalation.id}/`, { status: "in_progress", ...(escalation.assigned_to === mail ? {} : { assigned_to: mail }) });
  return "The escalation is yours.";
}

/** Begins the minutes of a call. One timer runs at a time: another that runs is told. @param {Row} row */
export async function startCall(row) {
  if (!can("logTime")) {
    return;
  }
  try {
    await post("time-entries/start/", { patient_id: row.patient_id, category: "interactive", activity: "phone_call", contact_method: "phone" });
    toast("The timer of the call runs.");
  } catch (error) {
    toast(`No timer: ${asProblem(error).message}`, "problem");
  }
}

/** Says how something went, whose it is, and that the list is to be fetched where no stream tells of it.
 *  @param {Row} row @param {Promise<string>} doing @param {() => void} fetch @returns {Promise<boolean>} */
export async function said(row, doing, fetch) {
  try {
    toast(`${row.patient_name}: ${await doing}`);
    if (stream.value !== "live") {
      fetch();
    }
    return true;
  } catch (error) {
    toast(`${row.patient_name}: ${asProblem(error).message}`, "problem");
    return false;
  }
}
