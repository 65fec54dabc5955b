// The order of the triage list, as on the server, to place a streamed row without a request.
// Source: docs/decisions/triage.md, "Triage ordering".

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["TriagePatient"]} Row */
/** @typedef {{risk_level: string, has_unack_alerts: string, needs_review: string, mine: string, escalated: string, search: string,
 *  ordering: string}} Filters */

/** Removes the zone, so that times of different precision compare as text. @param {string | null} at @param {string} none */
const moment = (at, none) => (at === null ? none : at.replace("Z", ""));
const text = (/** @type {string} */ a, /** @type {string} */ b) => (a < b ? -1 : a > b ? 1 : 0);
const readAt = (/** @type {Row} */ row) => moment(row.last_reading_at, "");

/** Order within equal scores: more critical alerts, older oldest alert, longer since review. @param {Row} a @param {Row} b */
const afterScore = (a, b) => b.unacknowledged_critical - a.unacknowledged_critical ||
  text(moment(a.oldest_unacknowledged_at, "9999"), moment(b.oldest_unacknowledged_at, "9999")) ||
  text(moment(a.last_reviewed_at, ""), moment(b.last_reviewed_at, "")) || text(a.patient_id, b.patient_id);

/** @type {Record<string, (a: Row, b: Row) => number>} */
export const orders = {
  "-risk_score": (a, b) => b.risk_score - a.risk_score || afterScore(a, b),
  "risk_score": (a, b) => a.risk_score - b.risk_score || afterScore(a, b),
  "last_reading_at": (a, b) => text(readAt(a), readAt(b)) || text(a.patient_id, b.patient_id),
  "-last_reading_at": (a, b) => text(readAt(b), readAt(a)) || text(b.patient_id, a.patient_id),
};

/** Whether a row matches the filters; care teams cannot be checked here. @param {Row} row @param {Filters} filters */
export function matchesFilters(row, filters) {
  const flag = (/** @type {string} */ wanted, /** @type {boolean} */ has) => wanted === "" || (wanted === "true") === has;
  const named = `${row.patient_name} ${row.mrn}`.toLowerCase();
  return (filters.risk_level === "" || filters.risk_level === row.risk_level)
    && flag(filters.has_unack_alerts, row.unacknowledged_alerts > 0) &&
    flag(filters.needs_review, row.needs_review) && (filters.escalated === "" || row.active_escalations > 0)
      && filters.search.toLowerCase().split(/\s+/).every((word) => named.includes(word));
}

export const pageSize = 30;

const trendLength = 60;

/** The streamed row, which has no trend and no target weight, with the old ones and the new value appended.
 *  @param {Row} before @param {Row} streamed @returns {Row} */
export function updateRow(before, streamed) {
  const now = streamed.concern;
  const was = before.concern;
  const row = { ...streamed, needs_target_weight: before.needs_target_weight, proposed_target_kg: before.proposed_target_kg };
  if (!now?.parameter || was?.parameter !== now.parameter) {
    return { ...row, trend: [] };
  }
  const trend = before.trend ?? [];
  const value = now.values[now.parameter];
  const newer = now.measured_at !== null && value !== undefined && now.state !== "unsure"
    && now.measured_at > (trend[trend.length - 1]?.at ?? "");
  return { ...row, trend: newer ? [...trend, { at: now.measured_at ?? "", value }].slice(-trendLength) : trend };
}

/** Whether the trend's parameter has changed. @param {Row} before @param {Row} streamed */
const isTrendChanged = (before, streamed) => before.concern?.parameter !== streamed.concern?.parameter;

/**
 * Applies changed rows to a page. Returns the page, and stale if it must be loaded again because a row entered or left it.
 * @param {{count: number, next: string | null, previous: string | null, results: Row[]}} page
 * @param {Map<string, Row | null>} streamed rows by patient, null for patients who left the list
 * @param {Filters} filters
 * @param {boolean} still keeps the rows in place
 */
export function applyChanges(page, streamed, filters, still) {
  const order = orders[filters.ordering];
  const last = page.results[page.results.length - 1];
  let stale = false;
  const results = [];
  for (const row of page.results) {
    const news = streamed.get(row.patient_id);
    if (news === undefined) {
      results.push(row);
      continue;
    }
    const fits = news !== null && matchesFilters(news, filters);
    stale ||= !fits || isTrendChanged(row, news);
    if (news && (fits || still)) { // a row that no longer matches stays while the order is held
      results.push(updateRow(row, news));
    }
  }
  const shown = new Set(page.results.map((row) => row.patient_id));
  for (const [id, news] of streamed) {
    if (!news) {
      continue;
    }
    const behind = last !== undefined && page.next !== null && order(news, last) > 0;
    if (shown.has(id)) {
      stale ||= behind && last.patient_id !== id; // a row of the next page may come before it
    } else if (filters.mine === "" && matchesFilters(news, filters)) {
      if (!behind && !(page.previous && order(news, page.results[0]) < 0)) {
        stale = true; // to load its trend, and the row that leaves the page
        if (!page.previous && !still) {
          results.push(news);
        }
      }
    }
  }
  const left = page.results.filter((row) => streamed.has(row.patient_id)
    && !results.some((one) => one.patient_id === row.patient_id)).length;
  return { page: { ...page, count: page.count - left, results: still ? results : results.sort(order).slice(0, pageSize) }, stale };
}
