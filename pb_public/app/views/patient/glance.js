// The patient at a glance: most severe open alert, blood pressure chart, days with readings, open work, contact, and last notes. All times
// are in the patient's zone.
import { getAll, get } from "../../api.js";
import { can } from "../../permissions.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { html, useEffect, useMemo } from "../../view.js";
import { WorstAlert } from "./glance/worst_alert.js";
import { Contact, LastNotes } from "./glance/contact.js";
import { DataDays } from "./glance/data_days.js";
import { Pressure } from "./glance/blood_pressure.js";
import { Tiles } from "./glance/tiles.js";
import { OpenWork } from "./glance/open_work.js";
import { ChartCard, medicinesText, stayText, useChart } from "./chart_context.js";
import { HeldDevices } from "./glance/devices.js";
import { EnrollmentItems } from "./enrollment_items.js";
import { daysAgoIn, mergeReadings, periods } from "./reading_periods.js";

/** Loads the open alerts, escalations and snoozes of a patient. @param {string} id */
async function openOf(id, /** @type {AbortSignal} */ signal) {
  const [active, acknowledged, recent, escalations, snoozes] = await Promise.all([
    get("alerts/", { patient_id: id, status: "active", page_size: 100 }, signal),
      get("alerts/", { patient_id: id, status: "acknowledged", page_size: 50 }, signal),
    get("alerts/", { patient_id: id, page_size: 50 }, signal), get("escalations/", { patient_id: id, page_size: 20 }, signal),
    get(`patients/${id}/snoozes/`, { in_force: true, page_size: 50 }, signal),
  ]);
  return {
    active: active.results, count: active.count, acknowledged: acknowledged.results, recent: recent.results,
    escalations: escalations.results.filter(({ status }) => !["resolved", "cancelled"].includes(status)), snoozes: snoozes.results,
  };
}

/** @param {{id: string, patient: any, turn: number, changed: () => void, zone: string | undefined, query: any, change: (next: any) =>
 *  void, reload: () => void,
 *    acts: import("./actions.js").Acts}} props query has the number of days and chart or table */
export function Glance({ id, patient, zone, turn, changed, reload, query, change, acts }) {
  const clinical = can("readClinical");
  const chart = useChart(patient);
  const days = periods.includes(query.days) ? query.days : 30;
  const readings = useLoad(async () => (await getAll("ingestion/observations/", { patient_id: id, date_from: daysAgoIn(zone, days) },
    2000)).reverse(), [id, days]);
  const summary = useLoad((signal) => get(`patients/${id}/vitals/summary/`, {}, signal), [id, turn]);
  const bounds = useLoad((signal) => (clinical ? get(`patients/${id}/vital-config/`, {}, signal) : Promise.resolve(false)),
    [id, clinical]);
  const open = useLoad((signal) => (clinical ? openOf(id, signal) : Promise.resolve(null)), [id, turn, clinical]);
  useEffect(() => {
    if (turn > 0) {
      get("ingestion/observations/", { patient_id: id, date_from: daysAgoIn(zone, days), page_size: 50 })
        .then(({ results }) => readings.change((before) => mergeReadings(before, results)), readings.reload);
    }
  }, [turn]);
  const span = useMemo(() => /** @type {[number, number]} */ ([Date.now() / 1000 - days * 86_400, Date.now() / 1000]),
    [days, readings.data]);
  const shared = { zone, thresholds: bounds.data || null, days, span };
  return html`<div class="glance">
    ${clinical && html`<${WorstAlert} open=${open.data} readings=${readings.data ?? []} zone=${zone} acts=${acts}
      medicines=${medicinesText(chart)} />`}
    <div class="glance-main">
      <${Loaded} from=${readings}>${(data) => html`
        <${Pressure} ...${shared} observations=${data} summary=${summary.data} choose=${(n) => change({ days: n })}
          table=${query.as === "table"}
          show=${(as) => change({ as })} implausible=${(open.data?.recent ?? []).filter((one) => one.type === "implausible_reading")} />
        <${Tiles} ...${shared} observations=${data} summary=${summary.data} />`}</${Loaded}>
    </div>
    <div class="glance-middle">
      <${DataDays} id=${id} turn=${turn} stay=${stayText(chart)} />
      <${ChartCard} chart=${chart} patient=${patient} changed=${reload} />
      <${EnrollmentItems} id=${id} patient=${patient} turn=${turn} changed=${changed} />
      <${HeldDevices} id=${id} turn=${turn} zone=${zone} />
    </div>
    <div class="glance-side">
      ${clinical && html`<${OpenWork} open=${open.data} readings=${readings.data ?? []} zone=${zone} />`}
      <${Contact} patient=${patient} zone=${zone} acts=${acts} />
      <${LastNotes} id=${id} turn=${turn} alerts=${open.data?.recent ?? []} zone=${zone} />
    </div>
  </div>`;
}
