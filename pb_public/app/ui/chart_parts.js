// Draws the parts of a chart other than its lines: bands, labeled limits, and marks.

/** @typedef {{from?: number, to?: number, tone: string}} Band values between two bounds */
/** @typedef {{at: number, text: string, tone: string, value?: number, shape?: "triangle" | "diamond" | "question" | "ring"}} Mark at a
 *  time in seconds: with a value a symbol at that point, otherwise a vertical line */
/** @typedef {{value: number, text: string, tone: string, shape: "triangle" | "diamond", dash: number[]}} Limit a bound with its name on
 *  the side */

/** A tick: "Nov 15", the hour in a chart of hours, the month in a chart of months. @param {number} tick seconds
 *  @param {number} step seconds between ticks @param {string} [timeZone] */
export const dateText = (tick, step, timeZone) => new Intl.DateTimeFormat(undefined, { timeZone, ...(step < 86_400
  ? { hour: "numeric", minute: "2-digit" } : step < 28 * 86_400 ? { month: "short", day: "numeric" }
    : { month: "short", year: "numeric" }) }).format(tick * 1000);

/** @param {string} name of a custom property */
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** @param {any} plot @param {Band[]} bands */
export function drawBands(plot, bands) {
  const { left, top, width, height } = plot.bbox;
  for (const band of bands) {
    const above = band.to === undefined ? top : plot.valToPos(band.to, "y", true);
    const below = band.from === undefined ? top + height : plot.valToPos(band.from, "y", true);
    const from = Math.max(above, top);
    const to = Math.min(below, top + height);
    if (to > from) {
      plot.ctx.fillStyle = color(band.tone);
      plot.ctx.fillRect(left, from, width, to - from);
    }
  }
}

/** @param {any} plot @param {Mark[]} marks */
export function drawMarks(plot, marks) {
  const { top, height } = plot.bbox;
  for (const mark of marks) {
    const x = plot.valToPos(mark.at, "x", true);
    if (mark.value !== undefined) {
      drawSign(plot.ctx, mark, x, plot.valToPos(mark.value, "y", true));
      continue;
    }
    plot.ctx.strokeStyle = color(mark.tone);
    plot.ctx.setLineDash([4, 4]);
    drawLine(plot.ctx, x, top, x, top + height);
    plot.ctx.setLineDash([]);
  }
}

/** @param {CanvasRenderingContext2D} ctx @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 */
function drawLine(ctx, x1, y1, x2, y2) {
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
}

/** Draws the limits and labels them on the right, except where a label would overlap another. @param {any} plot @param {Limit[]} limits
 *  @param {number} room pixels of CSS */
export function drawLimits(plot, limits, room) {
  const { left, top, width, height } = plot.bbox;
  const { ctx } = plot;
  const taken = [];
  for (const limit of limits) {
    const y = plot.valToPos(limit.value, "y", true);
    if (y < top || y > top + height) {
      continue;
    }
    ctx.strokeStyle = color(limit.tone);
    ctx.lineWidth = 1.25 * devicePixelRatio;
    ctx.globalAlpha = limit.shape === "diamond" ? 0.45 : 1; // the band also ends there
    ctx.setLineDash(limit.dash.map((step) => step * devicePixelRatio));
    drawLine(ctx, left, y, left + width, y);
    ctx.setLineDash([]);
    ctx.globalAlpha = 1;
    if (room > 0 && !taken.some((other) => Math.abs(other - y) < 13 * devicePixelRatio)) {
      taken.push(y);
      drawSign(ctx, { shape: limit.shape, tone: limit.tone }, left + width + 10 * devicePixelRatio, y, 4.5);
      ctx.font = `${11.5 * devicePixelRatio}px Inter, system-ui`;
      ctx.textAlign = "left";
      ctx.textBaseline = "middle";
      ctx.fillStyle = color(limit.tone);
      ctx.fillText(`${limit.text} ${limit.value}`, left + width + 19 * devicePixelRatio, y);
    }
  }
}

/** Draws a shape as in the badges, so that color is not the only sign. @param {CanvasRenderingContext2D} ctx @param {{shape?: string,
 *  tone: string}} mark  @param {number} x @param {number} y @param {number} [size] */
function drawSign(ctx, mark, x, y, size = 6) {
  const r = size * devicePixelRatio;
  ctx.fillStyle = color(mark.tone);
  ctx.strokeStyle = color("--surface");
  ctx.lineWidth = devicePixelRatio;
  if (mark.shape === "question") {
    ctx.font = `700 ${r * 2.4}px Inter, system-ui`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.strokeText("?", x, y);
    ctx.fillText("?", x, y);
    return;
  }
  ctx.beginPath();
  if (mark.shape === "ring") {
    ctx.arc(x, y, r * 0.6, 0, 2 * Math.PI);
    ctx.fillStyle = color("--surface");
    ctx.strokeStyle = color(mark.tone);
    ctx.lineWidth = 1.75 * devicePixelRatio;
  } else {
    const corners = mark.shape === "triangle" ? [[0, -r], [r, r * 0.8], [-r, r * 0.8]] : [[0, -r], [r, 0], [0, r], [-r, 0]];
    corners.forEach(([dx, dy], i) => (i === 0 ? ctx.moveTo(x + dx, y + dy) : ctx.lineTo(x + dx, y + dy)));
    ctx.closePath();
  }
  ctx.fill();
  ctx.stroke();
}
