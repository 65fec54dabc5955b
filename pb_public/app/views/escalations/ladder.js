// The time cells of an escalation row: next step and ladder.
import { html } from "../../view.js";
import { nextStep, tiers, tierTimes } from "../alerts/escalation_steps.js";
import { durationText, since } from "../alerts/labels.js";

/** @typedef {import("../alerts/escalation_steps.js").Escalation} Escalation */
/** @typedef {import("../alerts/escalation_steps.js").Deadlines} Deadlines */

export const shapes = { stat: "▲", urgent: "◆", routine: "○" };
export const tones = { stat: "critical", urgent: "warning", routine: "" };
export const alive = (/** @type {Escalation} */ one) => one.status === "open" || one.status === "in_progress";

/** The time to the next step, the largest text of a row. @param {{one: Escalation, deadlines: Deadlines | null}} props */
export function Next({ one, deadlines }) {
  const next = nextStep(one, deadlines);
  if (!next) {
    return html`<span class="soft">${one.status === "resolved" ? `Resolved ${since(one.resolved_at ?? "")}` : one.status === "cancelled"
      ? `Canceled ${since(one.cancelled_at ?? "")}` : ""}</span>`;
  }
  const left = next.at - Date.now();
  const hours = Math.floor(left / 3_600_000);
  const time = left <= 0 ? next.notifies ? "now" : durationText(-left) : hours >= 1 && hours < 48
    ? `${hours} h ${String(Math.floor((left % 3_600_000) / 60_000)).padStart(2, "0")}` : durationText(left);
  const tone = next.notifies ? tones[one.priority] : left <= 0 ? "warning" : "";
  return html`<strong class=${`time ${tone}`}>${left <= 0 && !next.notifies && html`<span aria-hidden="true">◆ </span>`}${time}</strong>
    <small>${next.notifies ? next.what : left <= 0 ? "note overdue" : next.what}</small>`;
}

/** The tiers: who was notified and who is next. @param {{one: Escalation, deadlines: Deadlines | null}} props */
export function Ladder({ one, deadlines }) {
  if (!deadlines) {
    return null;
  }
  const times = tierTimes(one, deadlines);
  const reached = one.history.filter((step) => step.event.startsWith("tier_"));
  const at = (/** @type {number} */ tier) => reached.filter((step) => step.event === `tier_${tier}`).at(-1)?.at
    ?? new Date(times[tier]).toISOString();
  const open = alive(one);
  const words = tiers.map((name, tier) => {
    const isReached = tier <= one.tier;
    return open && !one.taken || isReached
      ? `${name} ${isReached ? "paged" : "next"} ${since(tier === 0 ? one.created_at ?? "" : at(tier))}` : "";
  }).filter(Boolean).join(", ");
  return html`<ol class=${`ladder ${tones[one.priority]} ${one.taken ? "taken" : ""}`} aria-label=${words || "No one paged"}>
    ${tiers.map((name, tier) => {
      const isReached = tier <= one.tier;
      return html`<li key=${tier} class=${isReached ? one.taken || !open ? "reached done" : "reached" : ""} aria-hidden="true"><span
        class="rung">
        ${isReached && (one.taken || !open) ? "✓" : tier}</span>
        ${(isReached || (open && !one.taken)) && html`<span class=${tier === one.tier ? "who now" : "who"}>${name}</span><span class="at">
          ${since(tier === 0 ? one.created_at ?? "" : at(tier))}</span>`}</li>`;
    })}
  </ol>`;
}
