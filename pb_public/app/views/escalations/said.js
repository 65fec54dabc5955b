// The time cells of an escalation row: next step and ladder.
import { html } from "../../view.js";
import { nextStep, tiers, tierTimes } from "../alerts/steps.js";
import { lasting, since } from "../alerts/words.js";

/** @typedef {import("../alerts/steps.js").Escalation} Escalation */
/** @typedef {import("../alerts/steps.js").Deadlines} Deadlines */

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
  const time = left <= 0 ? next.told ? "now" : lasting(-left) : hours >= 1 && hours < 48
    ? `${hours} h ${String(Math.floor((left % 3_600_000) / 60_000)).padStart(2, "0")}` : lasting(left);
  const tone = next.told ? tones[one.priority] : left <= 0 ? "warning" : "";
  return html`<strong class=${`time ${tone}`}>${left <= 0 && !next.told && html`<span aria-hidden="true">◆ </span>`}${time}</strong>
    <small>${next.told ? next.what : left <= 0 ? "note overdue" : next.what}</small>`;
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
    const told = tier <= one.tier;
    return open && !one.taken || told ? `${name} ${told ? "paged" : "next"} ${since(tier === 0 ? one.created_at ?? "" : at(tier))}` : "";
  }).filter(Boolean).join(", ");
  return html`<ol class=${`ladder ${tones[one.priority]} ${one.taken ? "taken" : ""}`} aria-label=${words || "No one paged"}>
    ${tiers.map((name, tier) => {
      const told = tier <= one.tier;
      return html`<li key=${tier} class=${told ? one.taken || !open ? "told done" : "told" : ""} aria-hidden="true"><span class="rung">
        ${told && (one.taken || !open) ? "✓" : tier}</span>
        ${(told || (open && !one.taken)) && html`<span class=${tier === one.tier ? "who now" : "who"}>${name}</span><span class="at">
          ${since(tier === 0 ? one.created_at ?? "" : at(tier))}</span>`}</li>`;
    })}
  </ol>`;
}
