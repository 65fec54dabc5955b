// Reviews many entries at once, and undoes it.
import { post } from "../../../api.js";
import { number } from "../../../ui/format.js";
import { toast } from "../../../ui/toast.js";

/** @typedef {import("../blocking_reasons.js").Row} Row */

const batchLimit = 1000; // entries that one call reviews

/** Reviews entries and shows the result; Undo returns them to review. Returns the number of reviewed entries.
 *  @param {Row[]} rows @param {() => void} changed */
export async function reviewAll(rows, changed) {
  /** @type {string[]} */
  const done = [];
  let left = 0;
  for (let i = 0; i < rows.length; i += batchLimit) {
    const answer = await post("billing/entries/review/", { entry_ids: rows.slice(i, i + batchLimit).map((row) => row.entry_id) });
    done.push(...answer.details.filter((/** @type {any} */ one) => one.status === "reviewed").map((/** @type {any} */ one) => one.id));
    left += answer.skipped;
  }
  changed();
  const held = left > 0 ? `, ${number(left)} blocked in the meantime` : "";
  toast(`${number(done.length)} reviewed${held}.`, left > 0 ? "problem" : "done", done.length > 0 ? { undo: () => undoReview(done,
    changed) } : {});
  return done.length;
}

/** @param {string[]} ids @param {() => void} changed */
async function undoReview(ids, changed) {
  try {
    for (const id of ids) {
      await post(`billing/entries/${id}/return/`, { reason: "The review was undone." });
    }
  } finally {
    changed();
  }
}
