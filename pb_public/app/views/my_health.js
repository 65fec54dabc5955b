// The patient portal: today's task, the blood pressure, the readings, help, and who sees them.
import { get, getAll } from "../api.js";
import { follow } from "../events.js";
import { shownPatient } from "../portal/frame.js";
import { Loading } from "../portal/loading.js";
import { Today } from "../portal/enter.js";
import { TeamMessages, Unanswered } from "../portal/messages.js";
import { PressureChart } from "../portal/pressure_chart.js";
import { Questions } from "../portal/questions.js";
import { Value } from "../portal/readings.js";
import { Caregivers, WhoLooked } from "../portal/sharing.js";
import { t, tCode, tTime } from "../portal/words.js";
import { place } from "../router.js";
import { accessToken, practice, renewals } from "../session.js";
import { useLoad } from "../ui/states.js";
import { localInput } from "../ui/time.js";
import { isCounted } from "../ui/vitals.js";
import { html, useEffect, useState } from "../view.js";
import { daysAgoIn } from "./patient/reading_periods.js";
import { preferLanguage } from "../language.js";

export function MyHealth() {
  const patient = shownPatient();
  return patient ? html`<${Mine} key=${patient.id} id=${patient.id} scope=${patient.scope} />`
    : html`<h1>${t("noRecord")}</h1><p>${t("noRecordHelp")}</p>`;
}

/** @param {{id: string, scope: string}} props */
function Mine({ id, scope }) {
  const [revision, setRevision] = useState(0);
  const self = useLoad((signal) => get(`patients/${id}/`, {}, signal), [id]);
  const thresholds = useLoad((signal) => get(`patients/${id}/vital-config/`, {}, signal), [id]);
  const zone = self.data?.time_zone || practice.value.time_zone || undefined;
  const list = useLoad(() => getAll("ingestion/observations/", { patient_id: id, date_from: daysAgoIn(zone, 30) }, 500),
    [id, revision, zone]);
  useEffect(() => preferLanguage(self.data?.preferred_language), [self.data]);
  useEffect(() => follow("portal", accessToken(), { // news of the patient, such as a reading or a message
    onMessage: (news) => news.data.patient_id === id && setRevision((n) => n + 1), onUp: () => {}, onDown: () => {} }),
  [id, renewals.value]);
  const readings = /** @type {any[]} */ (list.data ?? []);
  const counted = readings.filter(isCounted);
  const today = localInput(new Date(), zone).slice(0, 10);
  const isDone = counted.some((o) => localInput(new Date(o.measured_at), zone).slice(0, 10) === today);
  const { tab } = place.value.query;
  if (scope === "self" && tab === "messages") {
    return html`<h1>${t("thread")}</h1><${TeamMessages} id=${id} zone=${zone} turn=${revision} />`;
  }
  if (scope === "self" && tab === "sharing") {
    return html`<h1>${t("sharing")}</h1><${Caregivers} id=${id} /><${WhoLooked} id=${id} zone=${zone} />`;
  }
  return html`<h1>${t("portal")}</h1>
    <${Loading} from=${list}>${() => html`
      <${Today} patient=${id} mayEnter=${scope !== "read"} newest=${counted[0]} isDone=${isDone} zone=${zone}
        thresholds=${thresholds.data} saved=${() => setRevision(revision + 1)} />
      ${scope === "self" && html`<${Unanswered} id=${id} zone=${zone} turn=${revision} />`}
      <${Questions} id=${id} mayEnter=${scope !== "read"} />
      <section class="card" aria-labelledby="chart"><h2 id="chart">${t("chart")}</h2>
        <${PressureChart} thresholds=${thresholds.data} zone=${zone}
          readings=${counted.filter((o) => o.observation_type === "blood_pressure").reverse()} /></section>
      <section class="card" aria-labelledby="list"><h2 id="list">${t("list")}</h2>
        <${Readings} readings=${readings} zone=${zone} /></section>`}
    </${Loading}>
    <details class="card"><summary>${t("help")}</summary>
      <ul><li>${t("help1")}</li><li>${t("help2")}</li><li>${t("help3")}</li></ul></details>`;
}

const shortList = 7;

/** @param {{readings: any[], zone: string | undefined}} props newest first */
function Readings({ readings, zone }) {
  const [showsAll, setShowsAll] = useState(false);
  if (readings.length === 0) {
    return html`<p>${t("listNone")}</p>`;
  }
  return html`<ul class="plain-list">${readings.slice(0, showsAll ? undefined : shortList).map((o) => html`<li key=${o.id}>
    <span>${tTime(o.measured_at, zone, "moment")}<small>${tCode(o.observation_type)}${o.status === "entered_in_error" ? `, ${t("removed")}`
      : isCounted(o) ? "" : `, ${t("notConfirmed")}`}</small></span>
    <${Value} of=${o} /></li>`)}</ul>
    ${!showsAll && readings.length > shortList && html`<button onClick=${() => setShowsAll(true)}>${t("showAll",
      { n: readings.length })}</button>`}`;
}
