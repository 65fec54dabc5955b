// One chart of the blood pressure with green bands for the targets, as an image that phones draw without a library.
import { isSet } from "../ui/bounds.js";
import { html } from "../view.js";
import { boundsFor, valueText } from "./readings.js";
import { t, tDay } from "./words.js";

const [width, height, left, bottom] = [360, 220, 34, 24];

/** The target as text. @param {any} b */
const targetText = (b) => (isSet(b?.low) && isSet(b?.high) ? t("from", { low: b.low, high: b.high })
  : isSet(b?.high) ? t("below", { high: b.high }) : isSet(b?.low) ? t("above", { low: b.low }) : "");

/** @param {{readings: any[], thresholds: any}} props readings are counted blood pressures, oldest first */
export function PressureChart({ readings, thresholds }) {
  if (readings.length < 2) {
    return html`<p>${t("chartNone")}</p>`;
  }
  const bounds = [boundsFor("blood_pressure", "systolic", thresholds), boundsFor("blood_pressure", "diastolic", thresholds)];
  const shown = readings.flatMap((o) => [o.systolic, o.diastolic]).concat(bounds.flatMap((b) => [b?.low, b?.high].filter(isSet)));
  const [least, most] = [Math.floor(Math.min(...shown) / 10) * 10 - 10, Math.ceil(Math.max(...shown) / 10) * 10 + 10];
  const times = readings.map((o) => Date.parse(o.measured_at));
  const [first, last] = [times[0], times[times.length - 1]];
  const x = (/** @type {number} */ at) => left + 8 + ((at - first) / (last - first || 1)) * (width - left - 16);
  const y = (/** @type {number} */ value) => 8 + ((most - value) / (most - least)) * (height - bottom - 8);
  const ticks = [0, 1, 2, 3].map((n) => Math.round(least + ((most - least) * n) / 3));
  const targets = bounds.map(targetText);
  return html`<svg class="pressure" viewBox=${`0 0 ${width} ${height}`} role="img"
      aria-label=${`${t("chart")}. ${t("chartText", { n: readings.length, value: valueText(readings[readings.length - 1]) })}`}>
    ${bounds.map((b) => b && isSet(b.high) && html`<rect class="target" x=${left} width=${width - left} y=${y(b.high)}
      height=${Math.max(0, y(isSet(b.low) ? b.low : least) - y(b.high))} />`)}
    ${ticks.map((tick) => html`<g key=${tick}><line x1=${left} x2=${width} y1=${y(tick)} y2=${y(tick)} />
      <text x=${left - 6} y=${y(tick) + 4} text-anchor="end">${tick}</text></g>`)}
    ${[["systolic", "one"], ["diastolic", "two"]].map(([field, tone]) => html`<g class=${tone} key=${field}>
      <polyline points=${readings.map((o, i) => `${x(times[i])},${y(o[field])}`).join(" ")} />
      ${readings.map((o, i) => html`<circle key=${o.id} cx=${x(times[i])} cy=${y(o[field])} r="3" />`)}</g>`)}
    <text x=${left} y=${height - 6}>${tDay(readings[0].measured_at.slice(0, 10))}</text>
    <text x=${width} y=${height - 6} text-anchor="end">${tDay(readings[readings.length - 1].measured_at.slice(0, 10))}</text>
  </svg>
  <p class="portal-key"><span class="one">●</span> ${t("upper")} <span class="two">●</span> ${t("lower")}</p>
  ${targets[0] && targets[1] && html`<p>${t("chartHelp", { systolic: targets[0], diastolic: targets[1] })}</p>`}`;
}
