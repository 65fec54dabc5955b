// Levels and states as badges: a shape and a word with the color, so that color is never the only sign.
import { humanize } from "./format.js";
import { classes, html } from "../view.js";

const shapes = {
  critical: "▲", stat: "▲", warning: "◆", urgent: "◆", suspect: "◆", failed: "▲", denied: "▲", down: "▲", degraded: "◆",
  normal: "●", healthy: "●", transmitted: "●", paid: "●", resolved: "●", no_data: "○",
};
const tones = {
  critical: "critical", stat: "critical", failed: "critical", denied: "critical", down: "critical", offline: "critical",
  warning: "warning", urgent: "warning", degraded: "warning", low: "warning", suspect: "warning", pending_review: "warning",
  appealed: "warning",
  normal: "good", healthy: "good", transmitted: "good", paid: "good", resolved: "good", connected: "good", online: "good",
  operational: "good", succeeded: "good",
};

/** @param {{of: string | null | undefined, text?: string}} props */
export const Badge = ({ of, text }) => html`<span class=${classes("badge", tones[of ?? ""])}>
  <span aria-hidden="true">${shapes[of ?? ""] ?? "■"}</span> ${text ?? humanize(of)}</span>`;

/** A factor's share of the score: a floor is the minimum, and above a floor only the danger adds to it.
 *  @param {{factor: string, points: number}} part @param {{factor: string}[]} all the factors of the score */
export const scoreShare = ({ factor, points }, all) => (factor === "floor" ? `≥${points}`
  : factor !== "danger" && all.some((other) => other.factor === "floor") ? "" : `+${points}`);

/** Whether a critical patient is still unanswered; nothing for the others. @param {{handling: string | null | undefined}} props */
export const Handling = ({ handling }) =>
  handling && html`<span class=${classes("badge", handling === "unanswered" ? "critical" : "warning")}>
  <span aria-hidden="true">${handling === "unanswered" ? "▲" : "◆"}</span> ${handling === "unanswered" ? "Unanswered"
    : "Still critical"}</span>`;

/** A risk score of 0 to 100 with its level. @param {{score: number, level: string}} props */
export const Risk = ({ score, level }) => html`<span class=${classes("risk", tones[level])}>
  <strong>${score}</strong><span><span aria-hidden="true">${shapes[level] ?? "○"}</span> ${humanize(level)}</span></span>`;
