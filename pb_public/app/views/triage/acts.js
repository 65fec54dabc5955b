// What is done about a patient of the list, with one key or one press.
import { get, patch, post, Problem } from "../../api.js";
import { can, canAcknowledge } from "../../can.js";
import { stream } from "../../live.js";
import { me } from "../../session.js";
import { asProblem } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";

/** @typedef {import("./order.js").Row} Row */
/** @typedef {import("../alerts/acts.js").Alert} Alert */

/** The unacknowledged alerts of a patient, the newest first. @param {string} patientID @returns {Promise<Alert[]>} */
export const openAlerts = async (patientID) => (await get("alerts/",
  { patient_id: patientID, acknowledged: false, page_size: 100 })).results;

const count = (/** @type {number} */ n) => (n === 1 ? "One alert" : `${n} alerts`);

const atOnce = 200; // what the service takes in one request
/** @typedef {{text: string, undo?: () => Promise<void>}} Done what was done, and how to take it back */

/**
 * Acknowledges alerts at once, with the same note in each. What another has to answer is left to them.
 * @param {Alert[]} alerts @param {string} note @param {() => void} undone
 * @returns {Promise<Done & {left: number}>} left are those that are still unanswered
 */
export async function acknowledge(alerts, note, undone) {
  const mine = alerts.filter(canAcknowledge).slice(0, atOnce).map(({ id }) => id);
  if (mine.length === 0) {
    throw new Problem(0, { detail: alerts.length ? "Critical alerts are for a nurse or provider." : "No open alert." });
  }
  const { results } = await post("alerts/acknowledge/", { alert_ids: mine, ...(note ? { notes: note } : {}) });
  const ids = results.filter((/** @type {any} */ one) => one.done).map((/** @type {any} */ one) => one.id);
  if (ids.length === 0) {
    throw new Problem(0, { detail: results[0].detail });
  }
  const left = alerts.length - ids.length;
  return {
    text: `${count(ids.length)} acknowledged${left > 0 ? `, ${left} left to others` : ""}.`, left,
    undo: async () => { await takeBack(ids); undone(); },
  };
}

/** @param {number[]} ids */
async function takeBack(ids) {
  const { results } = await post("alerts/undo/", { alert_ids: ids });
  const left = results.find((/** @type {any} */ one) => !one.done);
  if (left) {
    throw new Problem(0, { detail: `Not undone: ${left.detail}` });
  }
  toast(`Undone: ${ids.length === 1 ? "the alert is" : `${ids.length} alerts are`} as before.`);
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
  return escalations.filter((e) => mine && e.status === "open").sort((a, b) =>
    urgency.indexOf(a.priority) - urgency.indexOf(b.priority))[0];
}

/** Takes an escalation, also one that somebody else was told of. @param {any} escalation */
export async function take(escalation) {
  const mail = me.value?.email;
  await patch(`escalations/${escalation.id}/`, { status: "in_progress",
    ...(escalation.assigned_to === mail ? {} : { assigned_to: mail }) });
  return "The escalation is yours.";
}

/** Begins the minutes of a call. One timer runs at a time: another that runs is told. @param {Row} row */
export async function startCall(row) {
  if (!can("logTime")) {
    return;
  }
  try {
    await post("time-entries/start/", { patient_id: row.patient_id, category: "interactive", activity: "phone_call",
      contact_method: "phone" });
    toast("The timer of the call runs.");
  } catch (error) {
    toast(`No timer: ${asProblem(error).message}`, "problem");
  }
}

/** Says how something went, whose it is and how to take it back, and has the list fetched where no stream tells of it.
 *  @param {Row} row @param {Promise<string | Done>} doing @param {() => void} fetch @returns {Promise<boolean>} */
export async function said(row, doing, fetch) {
  const whose = (/** @type {string} */ text) => html`<span><bdi>${row.patient_name}</bdi>: ${text}</span>`;
  const told = () => { stream.value === "live" || fetch(); };
  try {
    const answer = await doing;
    const { text, undo } = typeof answer === "string" ? { text: answer, undo: undefined } : answer;
    toast(whose(text), "done", { undo: undo && (() => undo().then(told)) });
    told();
    return true;
  } catch (error) {
    toast(whose(asProblem(error).message), "problem");
    return false;
  }
}
