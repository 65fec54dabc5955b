// The most severe unacknowledged alert with its age and count, and other open causes.
import { canAcknowledge } from "../../../permissions.js";
import { ago, dateTime } from "../../../ui/format.js";
import { inUnits } from "../../../ui/units.js";
import { html } from "../../../view.js";
import { causes, causeName } from "../causes.js";

const shapes = { critical: "▲", warning: "◆" };

/** @param {{open: any, readings: any[], zone: string | undefined, acts: import("../actions.js").Acts, medicines?: string}} props
 *  medicines are the EMR's, which may explain the alert */
export function WorstAlert({ open, readings, zone, acts, medicines }) {
  if (!open) {
    return null;
  }
  const list = causes(open.active, readings);
  if (list.length === 0) {
    const waits = causes(open.acknowledged).length + open.escalations.length;
    return html`<section class="breach calm" aria-label="Out of range"><p><span
      aria-hidden="true">●</span> <strong>No open alerts.</strong>${
      waits > 0 ? ` ${waits} in progress: see Open work.` : ""}</p></section>`;
  }
  const [worst, ...others] = list;
  const mine = open.active.filter(canAcknowledge).length;
  return html`<section class=${`breach ${worst.level}`} aria-label="Out of range">
    <p class="what"><span class="sign" aria-hidden="true">${shapes[worst.level] ?? "■"}</span> <strong
      class="value">${worst.value || causeName(worst.type)}</strong>
      <span><strong title=${dateTime(worst.last, zone)}>${ago(worst.last)}</strong>${worst.alerts.length > 1
        && html`, <strong>×${worst.alerts.length}</strong> since ${dateTime(worst.first, zone)}`}</span>
      <span class="soft">${inUnits(worst.alerts[0].message)}</span>
      ${others.length > 0 && html`<span
        class="soft also">Also ${others.map((one, i) => html`${i > 0 ? ", " : ""}<span
        aria-hidden="true">${shapes[one.level] ?? "■"}</span>
        ${causeName(one.type)}${one.value ? ` ${one.value}` : ""}${one.alerts.length > 1 ? ` ×${one.alerts.length}` : ""}`)}.</span>`}
      ${medicines && html`<span class="soft also">Medicines: ${medicines}.</span>`}
    </p>
    ${mine > 0 && html`<button class="main no-print" aria-keyshortcuts="A" onClick=${acts.acknowledge}>Acknowledge ${mine === 1 ? "alert"
      : mine} with a note <kbd aria-hidden="true">A</kbd></button>`}
  </section>`;
}
