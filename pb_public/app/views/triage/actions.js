// Actions on a patient of the triage list.
import { get, patch, post, Problem } from "../../api.js";
import { can, canAcknowledge } from "../../permissions.js";
import { stream } from "../../live.js";
import { me } from "../../session.js";
import { countOf } from "../../ui/format.js";
import { asProblem } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";

/** @typedef {import("./order.js").Row} Row */
/** @typedef {import("../alerts/dialogs.js").Alert} Alert */

/** The unacknowledged alerts of a patient, the newest first. @param {string} patientID @returns {Promise<Alert[]>} */
export const openAlerts = async (patientID) => (await get("alerts/",
  { patient_id: patientID, acknowledged: false, page_size: 100 })).results;


const batchLimit = 200; // the server's limit for one request
/** @typedef {{text: string, undo?: () => Promise<any>, isReview?: boolean}} Done the result, and how to undo it */

/**
 * Acknowledges alerts with the same note. Alerts that require another role are left. With take, an escalation is taken too, which ends its
 * ladder.
 * @param {Alert[]} alerts @param {string} note @param {() => void} undone @param {any} [take]
 * @returns {Promise<Done & {left: number}>} left is the number of alerts that remain
 */
export async function acknowledge(alerts, note, undone, take = null) {
  const mine = alerts.filter(canAcknowledge).slice(0, batchLimit).map(({ id }) => id);
  if (mine.length === 0) {
    throw new Problem(0, { detail: alerts.length ? "Critical alerts require a nurse or provider." : "No open alerts." });
  }
  const { results } = await post("alerts/acknowledge/", { alert_ids: mine, ...(note ? { notes: note } : {}) });
  const ids = results.filter((/** @type {any} */ one) => one.done).map((/** @type {any} */ one) => one.id);
  if (ids.length === 0) {
    throw new Problem(0, { detail: results[0].detail });
  }
  const left = alerts.length - ids.length;
  const taken = take && await takeEscalation(take).then(() => ", escalation assigned to you", (error) =>
    `, but the escalation was not taken: ${asProblem(error).message}`);
  return {
    text: `${countOf(ids.length, "alert")} acknowledged${left > 0 ? `, ${left} left for others` : ""}${taken ?? ""}.`, left,
    undo: async () => { await undoAcknowledge(ids); undone(); },
  };
}

/** @param {number[]} ids */
async function undoAcknowledge(ids) {
  const { results } = await post("alerts/undo/", { alert_ids: ids });
  const left = results.find((/** @type {any} */ one) => !one.done);
  if (left) {
    throw new Problem(0, { detail: `Not undone: ${left.detail}` });
  }
  toast(`Undone: ${countOf(ids.length, "alert")} restored.`);
}

/** @param {Row} row @param {string} [note] @returns {Promise<Done>} */
export async function review(row, note = "") {
  if (!can("review")) {
    throw new Problem(0, { detail: "Reviews require a nurse or provider." });
  }
  const path = `triage/patients/${row.patient_id}/review/`;
  await post(path, note ? { notes: note } : {});
  return { text: "Reviewed.", isReview: true, undo: () => post(`${path}undo/`) };
}

/** Why a patient cannot be marked as reviewed, or "": to acknowledge is the review. @param {Row} row */
export const reviewBlocked = (row) => (row.unacknowledged_critical > 0
  ? "A critical alert is unanswered. Acknowledge it: that is the review." : "");

const mergeTime = 10_000; // milliseconds between reviews that share one message
const undoTime = 45_000; // the server undoes for a minute
/** The last reviews, which share one message and one Undo. */
let reviews = { at: 0, list: /** @type {{at: number, undo: () => Promise<any>}[]} */ ([]), dismiss: () => {} };

/** @param {(text: string) => any} named @param {Done} done @param {() => void} after */
function toastReview(named, { text, undo = async () => {} }, after) {
  const at = Date.now();
  const list = [...(at - reviews.at < mergeTime ? reviews.list : []), { at, undo }].filter((one) => at - one.at < undoTime);
  reviews.dismiss();
  const undoThem = async () => {
    reviews = { at: 0, list: [], dismiss: () => {} };
    const failed = (await Promise.allSettled(list.map((one) => one.undo()))).find((one) => one.status === "rejected");
    after();
    if (failed) {
      throw /** @type {PromiseRejectedResult} */ (failed).reason;
    }
    toast(list.length === 1 ? "Undone: not reviewed." : `Undone: ${list.length} reviews.`);
  };
  reviews = { at, list, dismiss: toast(list.length === 1 ? named(text) : `${list.length} reviewed.`, "done", { undo: undoThem }) };
}

const takerRoles = ["provider", "nurse", "clinical_manager", "admin"];

/** The most urgent escalation that the user may take; those in progress belong to their assignee. @param {any[]} escalations */
export function takeableEscalation(escalations) {
  const urgency = ["stat", "urgent", "routine"];
  const mine = can("changeEscalation") && takerRoles.includes(me.value?.role ?? "");
  return escalations.filter((e) => mine && e.status === "open").sort((a, b) =>
    urgency.indexOf(a.priority) - urgency.indexOf(b.priority))[0];
}

/** Takes an escalation, also one that is assigned to another user. @param {any} escalation */
export async function takeEscalation(escalation) {
  const mail = me.value?.email;
  await patch(`escalations/${escalation.id}/`, { status: "in_progress",
    ...(escalation.assigned_to === mail ? {} : { assigned_to: mail }) });
  return "Escalation assigned to you.";
}

/** Starts the timer for a call. Only one timer runs at a time; an error is shown if another is running.
 *  @param {{patient_id: string}} row */
export async function startCall(row) {
  if (!can("logTime")) {
    return;
  }
  try {
    await post("time-entries/start/", { patient_id: row.patient_id, category: "interactive", activity: "phone_call",
      contact_method: "phone" });
    toast("Call timer started.");
  } catch (error) {
    toast(`No timer: ${asProblem(error).message}`, "problem");
  }
}

/** Shows the result of an action with the patient's name and Undo, and reloads the list if no stream is connected.
 *  @param {Row} row @param {Promise<string | Done>} doing @param {() => void} fetch @returns {Promise<boolean>} */
export async function reportResult(row, doing, fetch) {
  const withName = (/** @type {string} */ text) => html`<span><bdi>${row.patient_name}</bdi>: ${text}</span>`;
  const reloadIfOffline = () => { stream.value === "live" || fetch(); };
  try {
    const answer = await doing;
    const done = /** @type {Done} */ (typeof answer === "string" ? { text: answer } : answer);
    const { text, undo } = done;
    if (done.isReview) {
      toastReview(withName, done, reloadIfOffline);
    } else {
      toast(withName(text), "done", { undo: undo && (() => undo().then(reloadIfOffline)) });
    }
    reloadIfOffline();
    return true;
  } catch (error) {
    toast(withName(asProblem(error).message), "problem");
    return false;
  }
}
