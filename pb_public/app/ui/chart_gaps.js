// Breaks chart lines at days without readings, so that no line bridges a gap in the data.

/** A line breaks after more than this many calendar days. Source: docs/decisions/observations.md, "Report for a visit". */
export const maxGapDays = 2;

/** The calendar days of a zone, as numbers. @param {string | undefined} zone @returns {(seconds: number) => number} */
export function dayNumber(zone) {
  const format = new Intl.DateTimeFormat("en-CA", { timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit" });
  return (seconds) => Date.parse(`${format.format(seconds * 1000)}T00:00:00Z`) / 86_400_000;
}

/**
 * Times and lines with a time without values inserted at each gap.
 * @template {{values: (number | null)[]}} L
 * @param {number[]} times seconds, ascending @param {L[]} lines @param {string | undefined} zone
 * @returns {{times: number[], lines: L[]}}
 */
export function breakAtGaps(times, lines, zone) {
  const day = dayNumber(zone);
  const days = times.map(day);
  const breaks = times.map((_, i) => i > 0 && days[i] - days[i - 1] > maxGapDays);
  if (!breaks.includes(true)) {
    return { times, lines };
  }
  const spread = (/** @type {any[]} */ list, /** @type {(i: number) => any} */ between) =>
    list.flatMap((one, i) => (breaks[i] ? [between(i), one] : [one]));
  return {
    times: spread(times, (i) => (times[i - 1] + times[i]) / 2),
    lines: lines.map((line) => ({ ...line, values: spread(line.values, () => null) })),
  };
}
