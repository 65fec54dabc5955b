// The patient chart in tabs. The live stream updates it in place.
import { setEmergencyReason, get, Problem } from "../api.js";
import { can } from "../permissions.js";
import { listen, onGap } from "../live.js";
import { useQuery } from "../query.js";
import { go } from "../router.js";
import { practice } from "../session.js";
import { Field, Form } from "../ui/form.js";
import { Failed, EmptyState, useLoad, Waiting } from "../ui/states.js";
import { useInSight } from "../ui/tabs.js";
import { html, useEffect, useState } from "../view.js";
import { telephone, useActions } from "./patient/actions.js";
import { PatientAlerts } from "./patient/alerts.js";
import { Averages } from "./patient/averages.js";
import { Billing } from "./patient/billing.js";
import { Caregivers } from "./patient/caregivers.js";
import { Devices } from "./patient/devices.js";
import { PatientEscalations } from "./patient/escalations.js";
import { Glance } from "./patient/glance.js";
import { Facts, Header } from "./patient/header.js";
import { PatientMessages } from "./patient/messages.js";
import { Readings } from "./patient/readings.js";
import { Questionnaires } from "./patient/questionnaires.js";
import { CareTeam, Consents } from "./patient/team.js";
import { Thresholds } from "./patient/thresholds.js";
import { TimeLog } from "./patient/time.js";
import { Vitals } from "./patient/vitals.js";

/** @typedef {{id: string, name: string, patient: any, active: boolean, turn: number, changed: () => void, zone: string | undefined}}
 *  TabProps turn counts changes to the patient; zone is the patient's and applies to all times of the chart */

/** @type {{tab: string, name: string, isVisible: () => boolean, show: (props: any) => any}[]} */
const tabs = [
  { tab: "overview", name: "At a glance", isVisible: () => true, show: (props) => html`<${Glance} ...${props} />` },
  { tab: "readings", name: "Readings", isVisible: () => true, show: (props) => html`<${Readings} ...${props} />
    <${Vitals} ...${props} thresholds=${can("readClinical")} /><${Averages} ...${props} />` },
  { tab: "alerts", name: "Alerts", isVisible: () => can("readClinical"), show: (props) => html`<${PatientAlerts} ...${props} />` },
  { tab: "escalations", name: "Escalations", isVisible: () => can("readClinical"), show: (props) => html`<${PatientEscalations}
    ...${props} />` },
  { tab: "messages", name: "Messages", isVisible: () => can("readMessages"), show: (props) => html`<${PatientMessages} ...${props} />` },
  { tab: "thresholds", name: "Thresholds", isVisible: () => can("readClinical"), show: (props) => html`<${Thresholds} ...${props} />` },
  { tab: "time", name: "Time log", isVisible: () => can("readTime"), show: (props) => html`<${TimeLog} ...${props} />` },
  { tab: "bill", name: "Billing", isVisible: () => can("explainBilling"), show: (props) => html`<${Billing} ...${props} />` },
  { tab: "devices", name: "Devices", isVisible: () => true, show: (props) => html`<${Devices} ...${props} />` },
  { tab: "people", name: "Team & consents", isVisible: () => true, show: (props) => html`<div class="grid"><${CareTeam}
    ...${props} /><${Consents} ...${props} />
    ${can("readCaregivers") && html`<${Caregivers} ...${props} />`}
    ${can("readQuestionnaires") && html`<${Questionnaires} ...${props} />`}</div>` },
];

/** @param {{id?: string, tab?: string}} props */
export function PatientSheet({ id, tab }) {
  return id ? html`<${Sheet} key=${id} id=${id} tab=${tab ?? "overview"} />`
    : html`<${EmptyState} title="No patient selected" page>Select one in the list of <button class="link"
    onClick=${() => go("patients")}>patients</button>.</${EmptyState}>`;
}

/** @param {{id: string, tab: string}} props tab is the initial tab */
function Sheet({ id, tab }) {
  const [query, setQuery] = useQuery({ tab: "", days: 30, as: "" });
  const [revision, setRevision] = useState(0);
  const [reason, setReason] = useState("");
  const patient = useLoad((signal) => get(`patients/${id}/`, {}, signal), [id, reason]);
  const standing = useLoad(async (signal) => (can("readClinical") && patient.data
    ? (await get("triage/patients/", { patient_id: id }, signal)).results[0] ?? null : null), [id, patient.data !== null]);
  const chosen = query.tab || tab;
  const row = useInSight(patient.data && chosen);
  const happened = () => setRevision((n) => n + 1);
  const all = () => { patient.reload(); standing.reload(); happened(); };
  const { acts, dialogs } = useActions({ id, patient: patient.data, standing: standing.data, emergency: reason !== "", days: query.days,
    changed: () => { standing.reload(); happened(); } });
  useFollow(id, standing, happened, all);
  useEffect(() => () => setEmergencyReason(""), [id]);
  if (patient.problem?.forbidden && patient.data === null) {
    return html`<${BreakGlass} problem=${patient.problem} tried=${reason}
      open=${(given) => { setEmergencyReason(given); setReason(given); }} />`;
  }
  if (patient.problem && patient.data === null) {
    return html`<${Failed} problem=${patient.problem} retry=${patient.reload} />`;
  }
  if (patient.data === null) {
    return html`<${Waiting} />`;
  }
  const p = patient.data;
  const mine = tabs.filter(({ isVisible }) => isVisible());
  const shown = mine.find((one) => one.tab === chosen) ?? mine[0];
  const zone = p.time_zone || practice.value.time_zone || undefined;
  return html`
    <div class="sheet-top"><${Header} patient=${p} standing=${standing.data} emergency=${reason !== ""} changed=${all} acts=${acts}
      zone=${zone} />
    <nav class="tabs no-print" aria-label="About this patient"
      ref=${row}>${mine.map((one) => html`<button key=${one.tab} aria-current=${one === shown ? "page" : null}
      onClick=${() => setQuery({ tab: one.tab === tab ? "" : one.tab })}>${one.name}${
      one.tab === "alerts" && standing.data?.unacknowledged_alerts > 0
        && html` <span class="count">${standing.data.unacknowledged_alerts}<span class="unseen"> open</span></span>`}</button>`)}</nav>
      <${Facts} patient=${p} standing=${standing.data} zone=${zone} /></div>
    <div class="sheet">${shown.show({ id, name: `${p.first_name} ${p.last_name}`, patient: p, active: p.active, turn: revision,
      changed: happened, reload: all,
      zone, query, change: setQuery, acts })}</div>
    <${PhoneBar} patient=${p} acts=${acts} open=${standing.data?.unacknowledged_alerts ?? 0} />
    ${dialogs}`;
}

/** The action bar on a phone: call, note, acknowledge. @param {{patient: any, acts: import("./patient/actions.js").Acts, open: number}}
 *  props */
const PhoneBar = ({ patient: p, acts, open }) => html`<div class="phone-bar no-print" role="group" aria-label="Actions">
  ${p.phone && html`<a class="button main" href=${telephone(p.phone)} onClick=${acts.called}>Call</a>`}
  ${acts.note && html`<button onClick=${acts.note}>${acts.running ? "Stop and note" : "Note"}</button>`}
  ${can("acknowledge") && open > 0 && html`<button onClick=${acts.acknowledge}>Acknowledge ${open}</button>`}
</div>`;

/** Follows the patient in the live stream: the message has the triage status; lists reload once for many messages. @param {string} id
 *  @param {any} standing @param {() => void} happened @param {() => void} reloadAll */
function useFollow(id, standing, happened, reloadAll) {
  useEffect(() => {
    let timer = 0;
    const soon = () => { timer ||= setTimeout(() => { timer = 0; happened(); }, 1000); };
    const stops = [
      listen("patient", ({ data }) => {
        if (data.patient_id === id && !data.removed) {
          standing.change((/** @type {any} */ before) => {
            if (before.last_reading_at !== data.last_reading_at) {
              soon();
            }
            return data;
          });
        }
      }),
      listen("alert", ({ data }) => data.patient_id === id && soon()),
      listen("escalation", ({ data }) => data.patient_id === id && soon()),
      onGap(reloadAll),
    ];
    return () => { clearTimeout(timer); stops.forEach((stop) => stop()); };
  }, [id]);
}

/** Break-glass access to a patient of another care team: requires a reason and notifies those responsible. @param {{problem:
 *  import("../api.js").Problem, tried: string, open: (reason: string) => void}} props */
function BreakGlass({ problem, tried, open }) {
  const send = async (/** @type {any} */ { reason }) => {
    const given = (reason ?? "").trim();
    if (given.length < 10) {
      throw new Problem(400, { field_errors: { reason: ["Enter at least 10 characters."] } });
    }
    open(given);
  };
  return html`<div class="card emergency-access"><h1>Not in your care team</h1>
    <p>This patient is not in your care team. In an emergency you can open the record with a reason.
      Access is audited, and the primary provider and clinical managers are notified immediately.</p>
    ${tried && html`<p class="notice problem" role="alert">${problem.message}</p>`}
    <${Form} submit="Open for emergency" danger send=${send}
      cancel=${() => history.back()}>${(errors) => html`<${Field} label="Reason" name="reason" kind="textarea" maxlength="500"
        errors=${errors} />`}</${Form}>
  </div>`;
}
