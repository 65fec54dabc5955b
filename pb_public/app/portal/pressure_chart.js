// One chart of the blood pressure with green bands for the targets, as an image that phones draw without a library.
import { isSet } from "../ui/bounds.js";
import { html } from "../view.js";
import { boundsFor, valueText } from "./readings.js";
import { t, tTime } from "./words.js";

const [width, height, left, bottom] = [340, 240, 36, 28];

/** The target as text. @param {any} b */
const targetText = (b) => (isSet(b?.low) && isSet(b?.high) ? t("from", { low: b.low, high: b.high })
  : isSet(b?.high) ? t("below", { high: b.high }) : isSet(b?.low) ? t("above", { low: b.low }) : "");

/** @param {{readings: any[], thresholds: any, zone: string | undefined}} props readings are counted blood pressures, oldest first */
export function PressureChart({ readings, thresholds, zone }) {
  if (readings.length < 2) {
    return html`<p>${t("chartNone")}</p>`;
  }
  const bounds = [boundsFor("blood_pressure", "systolic", thresholds), boundsFor("blood_pressure", "diastolic", thresholds)];
  const shown = readings.flatMap((o) => [o.systolic, o.diastolic]).concat(bounds.flatMap((b) => [b?.low, b?.high].filter(isSet)));
  const step = Math.max(...shown) - Math.min(...shown) > 120 ? 40 : 20;
  const [least, most] = [Math.floor(Math.min(...shown) / step) * step, Math.ceil(Math.max(...shown) / step) * step];
  const times = readings.map((o) => Date.parse(o.measured_at));
  const [first, last] = [times[0], times[times.length - 1]];
  const x = (/** @type {number} */ at) => left + 8 + ((at - first) / (last - first || 1)) * (width - left - 16);
  const y = (/** @type {number} */ value) => 8 + ((most - value) / (most - least)) * (height - bottom - 8);
  const ticks = Array.from({ length: (most - least) / step + 1 }, (_, n) => least + n * step);
  const targets = bounds.map(targetText);
  return html`<svg class="pressure" viewBox=${`0 0 ${width} ${height}`} role="img"
      aria-label=${`${t("chart")}. ${t("chartText", { n: readings.length, value: valueText(readings[readings.length - 1]) })}`}>
    ${bounds.map((b) => b && isSet(b.high) && html`<rect class="target" x=${left} width=${width - left} y=${y(b.high)}
      height=${Math.max(0, y(isSet(b.low) ? b.low : least) - y(b.high))} />`)}
    ${ticks.map((tick) => html`<g key=${tick}><line x1=${left} x2=${width} y1=${y(tick)} y2=${y(tick)} />
      <text x=${left - 6} y=${y(tick) + 5} text-anchor="end">${tick}</text></g>`)}
    ${[["systolic", "upper"], ["diastolic", "lower"]].map(([field, tone]) => html`<g class=${tone} key=${field}>
      <polyline points=${readings.map((o, i) => `${x(times[i])},${y(o[field])}`).join(" ")} />
      ${readings.map((o, i) => html`<circle key=${o.id} cx=${x(times[i])} cy=${y(o[field])}
        r=${i === readings.length - 1 ? 5 : 2} />`)}</g>`)}
    <text x=${left} y=${height - 6}>${tTime(readings[0].measured_at, zone, "date")}</text>
    <text x=${width} y=${height - 6} text-anchor="end">${tTime(readings[readings.length - 1].measured_at, zone, "date")}</text>
  </svg>
  <ul class="portal-key">${/** @type {const} */ (["upper", "lower"]).map((name, i) => html`<li key=${name} class=${name}>${t(name)}${
    targets[i] && html`: <span>${t("target", { range: targets[i] })}</span>`}</li>`)}</ul>`;
}
