// The patient list: search, and enroll a new patient.
import { get, getAll, patch, Problem } from "../api.js";
import { can, scopeOf } from "../permissions.js";
import { useQuery } from "../query.js";
import { go } from "../router.js";
import { ageAndSex } from "../ui/age.js";
import { Badge } from "../ui/badge.js";
import { Dialog, Field, Form } from "../ui/form.js";
import { ageText, calendarDate, humanize, number } from "../ui/format.js";
import { EmptyState, Loaded, useLoad } from "../ui/states.js";
import { Tabs } from "../ui/tabs.js";
import { StaffPicker } from "../ui/staff_picker.js";
import { Pages, Table } from "../ui/table.js";
import { toast } from "../ui/toast.js";
import { readingText } from "../ui/vitals.js";
import { html, useRef } from "../view.js";
import { CodesPicker, InsuranceFields, insuranceOf, nested, ScheduleFields, scheduleOf, unchosenText } from "./enrollment/fields.js";
import { PersonFields, personOf } from "./enrollment/person.js";
import { telephone } from "./patient/actions.js";
import { HoldBadge } from "./patient/hold.js";
import { BehindOnDays } from "./patients/behind_on_days.js";

const open = (/** @type {any} */ patient) => go("patient", { id: patient.id });

export const Patients = () => html`<div class="heading"><h1>Patients</h1>${can("changePatient") && html`<div class="acts">
    <button onClick=${() => go("enrolment")}>Unfinished enrollments</button>
    <button class="main" onClick=${() => go("enrolment", { fresh: true })}>Enroll patient</button></div>`}</div>
  <${Tabs} label="Patients" tabs=${[
    { key: "all", name: "All patients", show: () => html`<${AllPatients} />` },
    can("readDays") && { key: "days", name: "Behind on days", show: () => html`<${BehindOnDays} />` },
  ]} />`;

const pageSize = 50;
const signs = { critical: "▲", warning: "◆", normal: "●", no_data: "○" };

/** A page of patients with their triage rows, their days with data, and the names of their providers, as far as the role reads them.
 *  @param {Record<string, any>} query @param {AbortSignal} signal */
async function loadPage(query, signal) {
  const page = await get("patients/", { ...query, page_size: pageSize }, signal);
  const patient_ids = page.results.map((/** @type {any} */ p) => p.id).join(",");
  const about = (/** @type {boolean} */ may, /** @type {string} */ path) => (may && patient_ids && query.active
    ? get(path, { patient_ids, page_size: pageSize }, signal).then(({ results }) => new Map(results.map((/** @type {any} */ one) =>
      [one.patient_id, one]))) : new Map());
  const [rows, days, staff] = await Promise.all([about(scopeOf("read_triage") === "all", "triage/patients/"),
    about(can("readDays"), "patients/data-days/"), scopeOf("read_staff") === "all" ? getAll("users/staff/") : []]);
  const names = new Map(staff.map((/** @type {any} */ one) => /** @type {[number, string]} */ ([one.id, one.name])));
  return { ...page, results: page.results.map((/** @type {any} */ p) => ({ ...p, row: rows.get(p.id), days: days.get(p.id),
    provider: names.get(p.primary_provider_id) })) };
}

function AllPatients() {
  const [query, setQuery] = useQuery({ active: true, search: "", page: 1 }, ["search"]);
  const wait = useRef(0);
  const list = useLoad((signal) => loadPage({ ...query, ordering: "last_name" }, signal), [JSON.stringify(query)]);
  return html`<div class="filters slim" role="search">
      <${Field} label="Name or MRN" name="search" kind="search" value=${query.search} onInput=${(event) => {
        clearTimeout(wait.current);
        wait.current = setTimeout(() => setQuery({ search: event.target.value.trim() }), 300);
      }} />
      <div class="choices" role="group" aria-label="Which patients">${[true, false].map((active) => html`<button key=${active}
        aria-pressed=${query.active === active ? "true" : "false"} onClick=${() => setQuery({ active })}>${active ? "Active"
          : "Archived"}${query.active === active && list.data && html` <strong>${number(list.data.count)}</strong>`}</button>`)}</div>
    </div>
    <${Loaded} from=${list} empty=${(data) => data.count === 0} nothing=${html`<${EmptyState} title="No patients match" />`}>
      ${(data) => html`<${Table} kind="patients" caption="Patients" rows=${data.results} columns=${columns()} open=${open} zone=${false} />
        ${data.count > pageSize && html`<${Pages} page=${query.page} count=${data.count} size=${pageSize}
          turn=${(page) => setQuery({ page })} />`}`}
    </${Loaded}>`;
}

/** The latest reading of a triage row, in words. @param {any} row */
function latest(row) {
  const [kind, vital] = Object.entries(row?.latest_vitals ?? {}).sort(([, a], [, b]) => (a.measured_at < b.measured_at ? 1 : -1))[0] ?? [];
  return vital ? html`${readingText({ ...vital, observation_type: kind })} <small>${ageText(vital.measured_at)}</small>` : "No reading";
}

/** @returns {import("../ui/table.js").Column[]} */
const columns = () => [
  { name: "name", head: "Name", cell: (p) => html`<bdi>${p.last_name}, ${p.first_name}</bdi>` },
  { name: "age", head: "Age, sex", cell: (p) => ageAndSex(p, p.time_zone ?? undefined) || "–" },
  { name: "mrn", head: "MRN" },
  ...(scopeOf("read_triage") === "all" ? [
    { name: "level", head: "Level", cell: (/** @type {any} */ p) => p.row && html`<span class=${`sign ${p.row.risk_level}`}><span
      aria-hidden="true">${signs[p.row.risk_level]}</span> ${humanize(p.row.risk_level)} <b>${p.row.risk_score}</b></span>` },
    { name: "latest", head: "Last reading", cell: (/** @type {any} */ p) => p.row && latest(p.row) }] : []),
  ...(can("readDays") ? [{ name: "days", head: "Days", cell: (/** @type {any} */ p) => p.days && html`<span title=${
    `${p.days.days_to_go} more by ${calendarDate(p.days.last_day)}`}>${p.days.days} of ${p.days.days_needed}</span>` }] : []),
  ...(scopeOf("read_staff") === "all" ? [{ name: "provider", head: "Provider",
    cell: (/** @type {any} */ p) => p.provider ?? "–" }] : []),
  { name: "phone", head: "Phone", cell: (p) => (p.phone ? html`<a data-patient=${p.id} href=${telephone(p.phone)}>${p.phone}</a>` : "–") },
  { name: "status", head: "State", cell: (p) => html`${p.status !== "active" && html`<${Badge} of=${p.status} />`}
    ${p.hold && html` <${HoldBadge} hold=${p.hold} />`}
    ${p.needs_thresholds && html` <${Badge} of="warning" text="Needs thresholds" />`}
    ${p.provisional?.length > 0 && html` <${Badge} of="warning" text="Provisional limits" />`}
    ${p.needs_target_weight && html` <${Badge} of="warning" text="Needs a dry weight" />`}` },
];

/** The dialog that edits a patient: identity, insurance, provider, and expected readings.
 *  @param {{patient: any, close: () => void, done: (patient: any) => void}} props */
export function PatientDialog({ patient: p, close, done }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const keep = ({ schedule_mode, ...values }) => {
    const left = unchosenText(box.current, "icd10_codes");
    if (Object.keys(left).length > 0) {
      throw new Problem(400, { field_errors: left });
    }
    const body = personOf(values);
    return patch(`patients/${p.id}/`, {
      ...body, insurance: insuranceOf(body.insurance), primary_provider_id: body.primary_provider_id ? Number(body.primary_provider_id)
        : null,
      monitoring_schedule: scheduleOf(schedule_mode, body.monitoring_schedule, p.monitoring_schedule),
    });
  };
  return html`<${Dialog} wide title="Edit patient" close=${close}><div ref=${box}>
    <${Form} submit="Save" cancel=${close} send=${async (values) => keep(values)}
      done=${(answer) => { toast("Saved."); close(); done(answer); }}>${(errors) => html`
      <${PersonFields} patient=${p} errors=${errors} autofocus />
      <${CodesPicker} codes=${p.icd10_codes} errors=${errors} />
      <div class="fields"><${StaffPicker} label="Primary provider" name="primary_provider_id" by="id" roles=${["provider"]}
        value=${p.primary_provider_id} emptyLabel="Not assigned" errors=${errors} /></div>
      <fieldset><legend>Insurance</legend><${InsuranceFields} insurance=${p.insurance} errors=${errors} /></fieldset>
      <fieldset><legend>Expected readings</legend><${ScheduleFields} schedule=${p.monitoring_schedule} errors=${errors} /></fieldset>`}
    </${Form}></div>
  </${Dialog}>`;
}
