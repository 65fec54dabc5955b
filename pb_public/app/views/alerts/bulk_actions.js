// Acknowledges or resolves many alerts with one note, takes their escalations, and undoes it.
import { call } from "../../api.js";
import { countOf } from "../../ui/format.js";
import { asProblem } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";
import { takeableEscalation, takeEscalation } from "../triage/actions.js";

/** @typedef {import("./labels.js").Group} Group */
/** take acknowledges, and takes the open escalations of the alerts. @typedef {"acknowledge" | "resolve" | "take"} Deed */

const batchLimit = 200; // the server's limit for one request
const doneText = { acknowledge: "Acknowledged", resolve: "Resolved", take: "Acknowledged and took" };

/** Whether the user may take an escalation, which stops its ladder. @param {Group["escalation"]} escalation */
export const isTakeable = (escalation) => escalation !== null && takeableEscalation([escalation]) !== undefined;

/** An idempotency key: a repeated request is carried out once. */
const idempotencyKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** @param {string} path @param {number[]} ids @param {Record<string, any>} more */
async function inBatches(path, ids, more = {}) {
  const results = [];
  for (let i = 0; i < ids.length; i += batchLimit) {
    const body = { alert_ids: ids.slice(i, i + batchLimit), ...more };
    try {
      const answer = await call("POST", path, { body, headers: { "Idempotency-Key": idempotencyKey() } });
      results.push(...answer.results);
    } catch (error) {
      if (results.length === 0) {
        throw error;
      }
      toast(asProblem(error).message, "problem"); // earlier parts are kept, and can be undone
      break;
    }
  }
  return results;
}

/** The patient's name, or the number of patients. @param {Group[]} groups */
const patientText = (groups) => {
  const names = [...new Set(groups.map(({ patient_name }) => patient_name))];
  return names.length === 1 ? html` of <bdi>${names[0]}</bdi>` : ` of ${names.length} patients`;
};

/**
 * Acknowledges or resolves all alerts of the groups with one note, and offers Undo; returns the number of alerts.
 * @param {Deed} deed @param {Group[]} groups @param {string} note
 * @param {{done: (ids: number[], deed: Deed) => void, undone: (ids: number[]) => void}} callbacks
 */
export async function applyToGroups(deed, groups, note, { done, undone }) {
  const path = deed === "resolve" ? "alerts/resolve/" : "alerts/acknowledge/";
  const results = await inBatches(path, groups.flatMap(({ alert_ids }) => alert_ids), note.trim() ? { notes: note } : {});
  const ids = results.filter((one) => one.done).map(({ id }) => id);
  const refused = results.filter((one) => !one.done);
  if (refused.length > 0) {
    const reasons = [...new Set(refused.map(({ code }) => reasonOf(code)))].join(" ");
    toast(`${countOf(refused.length, "alert")} not changed: ${reasons}`, "problem");
  }
  if (deed === "take" && ids.length > 0) {
    await takeAll(groups);
  }
  done(ids, deed);
  if (ids.length > 0) {
    toast(html`<strong>${doneText[deed]} ${
      countOf(ids.length, "alert")}</strong>${patientText(groups)}${note.trim() && ", with your note"}`,
      "done",
      { undo: () => undoAll(ids, undone) });
  }
  return ids.length;
}

/** @param {Group[]} groups */
async function takeAll(groups) {
  for (const one of new Map(groups.map(({ escalation }) => [escalation?.id, escalation])).values()) {
    if (isTakeable(one)) {
      await takeEscalation(one).catch((error) => toast(`The escalation was not taken: ${asProblem(error).message}`, "problem"));
    }
  }
}

/** @param {number[]} ids @param {(ids: number[]) => void} undone */
async function undoAll(ids, undone) {
  const results = await inBatches("alerts/undo/", ids);
  const back = results.filter((one) => one.done).map(({ id }) => id);
  undone(back);
  const left = results.find((one) => !one.done);
  if (left) {
    toast(`${back.length > 0 ? `${back.length} undone, ${results.length - back.length} not` : "Not undone"}: ${left.detail}`, "problem");
  } else {
    toast(`Undone: ${countOf(back.length, "alert")} restored.`);
  }
}

/** @param {string} code */
const reasonOf = (code) => ({
  permission_denied: "critical alerts require a nurse or provider, and patients their care team.",
  invalid_state: "it was resolved in the meantime.", not_found: "it no longer exists.",
  validation_error: "the note is too long.",
}[code] ?? "the server refused.");
