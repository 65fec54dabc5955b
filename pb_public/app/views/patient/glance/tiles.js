// What else is measured: the last value of each, how old it is, and its way through the days.
import { boundsOf, known, levelIn } from "../../../ui/bounds.js";
import { Spark } from "../../../ui/chart.js";
import { ago, dateTime } from "../../../ui/format.js";
import { counts, values } from "../../../ui/vitals.js";
import { html } from "../../../view.js";
import { level } from "./pressure.js";
import { suspect } from "../readings_of.js";

const shown = values.filter(({ field }) => !["systolic", "diastolic"].includes(field));

/** @param {{observations: any[], thresholds: any, summary: any, days: number, zone: string | undefined}} props */
export function Tiles({ observations, thresholds, summary, days, zone }) {
  const measured = shown.filter(({ field }) => observations.some((o) => counts(o) && typeof o[field] === "number"));
  const others = shown.filter((value) => !measured.includes(value)).map(({ title, name }) => title ?? name);
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
  const counted = mine.filter(counts);
  const last = counted[counted.length - 1];
  const name = value.title ?? value.name;
  const bounds = boundsOf(value, thresholds);
  const numbers = counted.slice(-40).map((o) => o[value.field]);
  const out = levelIn(last[value.field], bounds);
  const doubted = mine.filter(suspect).length;
  return html`<div class="heading"><h3>${name}</h3><small class="soft"
    title=${dateTime(last.measured_at, zone)}>${ago(last.measured_at)}</small></div>
    <p class="figure">${level(last[value.field], bounds, `${last[value.field]} ${value.unit}`)}</p>
    <${Spark} values=${numbers} low=${bounds?.low} high=${bounds?.high}
      label=${`${name}: ${numbers.length} values from ${Math.min(...numbers)} to ${Math.max(...numbers)} ${value.unit}, the last ${out}`} />
    <p class="soft">${[about(value, group, thresholds, days), doubted > 0
      && `${doubted} suspect left out`].filter(Boolean).join(" · ")}</p>`;
}

/** @param {import("../../../ui/vitals.js").Value} value @param {any} group @param {any} thresholds @param {number} days */
function about(value, group, thresholds, days) {
  if (value.changes) {
    const target = thresholds?.[value.group]?.target_kg;
    return [known(target) && `target ${target}`, group?.change_kg
      && `${group.change_kg > 0 ? "+" : ""}${group.change_kg} kg in ${days} days`].filter(Boolean).join(", ")
      || (group?.mean ? `mean ${group.mean}` : "");
  }
  return group?.readings > 0 ? `mean ${group.mean}, ${group.min}–${group.max} in ${days} days` : "";
}
