// Tiles for the other measures: last value, age, and trend.
import { boundsOf, isSet, levelIn } from "../../../ui/bounds.js";
import { Spark } from "../../../ui/chart.js";
import { ago, dateTime } from "../../../ui/format.js";
import { displayed, displayedChange, unitOf } from "../../../ui/units.js";
import { isCounted, values } from "../../../ui/vitals.js";
import { html } from "../../../view.js";
import { level } from "./blood_pressure.js";
import { isSuspect } from "../reading_periods.js";

const order = ["normal", "warning", "critical"];
const tiled = values.filter(({ field }) => !["systolic", "diastolic"].includes(field));

/** Values out of range come first.
 *  @param {{observations: any[], thresholds: any, summary: any, days: number, zone: string | undefined}} props */
export function Tiles({ observations, thresholds, summary, days, zone }) {
  const lastOf = (/** @type {string} */ field) => observations.filter((o) => isCounted(o) && typeof o[field] === "number").at(-1);
  const rank = (/** @type {any} */ value) => order.indexOf(levelIn(lastOf(value.field)[value.field], boundsOf(value, thresholds)));
  const measured = tiled.filter(({ field }) => lastOf(field)).sort((a, b) => rank(b) - rank(a));
  const others = tiled.filter((value) => !measured.includes(value)).map(({ title, name }) => title ?? name);
  return html`${measured.length > 0 && html`<ul class="tiles" aria-label="Other readings">${measured.map((value) =>
  html`<li key=${value.field} class="card"><${Tile} value=${value} observations=${observations} thresholds=${thresholds} days=${days}
    zone=${zone}
    group=${summary?.periods.find((/** @type {any} */ period) => period.days === days)?.[value.group]} /></li>`)}</ul>`}
    ${others.length > 0 && html`<p class="unmeasured soft">Not measured in ${days} days: ${others.join(", ")}.</p>`}`;
}

/** @param {{value: import("../../../ui/vitals.js").Value, observations: any[], thresholds: any, group: any, days: number, zone: string |
 *  undefined}} props */
function Tile({ value, observations, thresholds, group, days, zone }) {
  const mine = observations.filter((o) => typeof o[value.field] === "number");
  const counted = mine.filter(isCounted);
  const last = counted[counted.length - 1];
  const name = value.title ?? value.name;
  const bounds = boundsOf(value, thresholds);
  const read = (/** @type {any} */ n) => displayed(n, value.unit);
  const unit = unitOf(value.unit);
  const numbers = counted.slice(-40).map((o) => read(o[value.field]));
  const out = levelIn(last[value.field], bounds);
  const doubted = mine.filter(isSuspect).length;
  return html`<div class="heading"><h3>${name}</h3><small class="soft"
    title=${dateTime(last.measured_at, zone)}>${ago(last.measured_at)}</small></div>
    <p class="figure">${level(last[value.field], bounds, `${read(last[value.field])} ${unit}`)}</p>
    <${Spark} values=${numbers} low=${read(bounds?.low)} high=${read(bounds?.high)}
      label=${`${name}: ${numbers.length} values from ${Math.min(...numbers)} to ${Math.max(...numbers)} ${unit}, the last ${out}`} />
    <p class="soft">${[about(value, group, thresholds, days), doubted > 0 && `${doubted} suspect excluded`].filter(Boolean).join(" · ")}
      </p>`;
}

/** @param {import("../../../ui/vitals.js").Value} value @param {any} group @param {any} thresholds @param {number} days */
function about(value, group, thresholds, days) {
  if (value.changes) {
    const target = thresholds?.[value.group]?.target_kg;
    return [isSet(target) && `target ${displayed(target, "kg")}`,
      group?.change_kg
        && `${group.change_kg > 0 ? "+" : ""}${displayedChange(group.change_kg, "kg")} ${unitOf("kg")} in ${days} days`].filter(Boolean)
        .join(", ")
      || (group?.mean ? `mean ${displayed(group.mean, value.unit)}` : "");
  }
  return group?.readings > 0 ? `mean ${displayed(group.mean, value.unit)}, ${displayed(group.min, value.unit)}–${displayed(group.max,
    value.unit)} in ${days} days` : "";
}
