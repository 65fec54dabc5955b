// The next step of an escalation, and its time. Source: docs/decisions/escalations.md, "Escalation ladder".

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["Escalation"]} Escalation */
/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["EscalationDeadlines"]} Deadlines */

/** Names of the tiers. */
export const tiers = ["Care team", "On call", "Managers", "All"];
const tierLabels = ["", "to on call", "to managers", "to all"];

/**
 * The times of the tiers of an escalation that no one has taken.
 * @param {Escalation} one
 * @param {Deadlines} deadlines
 * @returns {number[]}
 */
export function tierTimes(one, deadlines) {
  const from = Date.parse(one.waits_since ?? one.created_at ?? "");
  const { on_call_seconds: first, managers_seconds: second, everyone_seconds: third } = deadlines[one.priority];
  return [from, from + first * 1000, from + second * 1000, from + third * 1000];
}

/**
 * The next step and its time; null for none.
 * @param {Escalation} one
 * @param {Deadlines | null} deadlines
 * @returns {{at: number, what: string, notifies: boolean} | null}
 */
export function nextStep(one, deadlines) {
  if (!deadlines || (one.status !== "open" && one.status !== "in_progress")) {
    return null;
  }
  if (one.taken) {
    return { at: Date.parse(one.works_since ?? one.updated_at ?? "") + deadlines.note_seconds * 1000, what: "note is due",
      notifies: false };
  }
  const times = tierTimes(one, deadlines);
  if (one.tier >= 3) {
    return { at: Date.parse(one.tier_at ?? "") + deadlines[one.priority].everyone_seconds * 1000, what: "to all again", notifies: true };
  }
  return { at: times[one.tier + 1], what: tierLabels[one.tier + 1], notifies: true };
}

/**
 * Sorts by urgency: untaken first, then by priority, then by the next step.
 * @param {Escalation[]} list
 * @param {Deadlines | null} deadlines
 */
export function byUrgency(list, deadlines) {
  const rank = { stat: 0, urgent: 1, routine: 2 };
  const next = (/** @type {Escalation} */ one) => nextStep(one, deadlines)?.at ?? 0;
  return [...list].sort((a, b) => Number(a.taken) - Number(b.taken) || rank[a.priority] - rank[b.priority] || next(a) - next(b)
    || a.id - b.id);
}
