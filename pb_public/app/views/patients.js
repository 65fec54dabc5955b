// The patient list: search, and enroll a new patient.
import { patch, Problem } from "../api.js";
import { can } from "../permissions.js";
import { useQuery } from "../query.js";
import { go } from "../router.js";
import { Badge } from "../ui/badge.js";
import { Dialog, Field, Form } from "../ui/form.js";
import { calendarDate, humanize } from "../ui/format.js";
import { Tabs } from "../ui/tabs.js";
import { StaffPicker } from "../ui/staff_picker.js";
import { List } from "../ui/table.js";
import { toast } from "../ui/toast.js";
import { html, useRef } from "../view.js";
import { CodesPicker, InsuranceFields, insuranceOf, nested, ScheduleFields, scheduleOf, unchosenText } from "./enrollment/fields.js";
import { PersonFields, personOf } from "./enrollment/person.js";
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

function AllPatients() {
  const [query, setQuery] = useQuery({ active: true, search: "" }, ["search"]);
  const wait = useRef(0);
  return html`<div class="filters" role="search">
      <${Field} label="Name or MRN" name="search" kind="search" value=${query.search} onInput=${(event) => {
        clearTimeout(wait.current);
        wait.current = setTimeout(() => setQuery({ search: event.target.value.trim() }), 300);
      }} />
      <${Field} label="Show" name="active" kind="select" value=${String(query.active)}
        options=${[["true", "Active"], ["false", "Archived"]]}
        onChange=${(event) => setQuery({ active: event.target.value === "true" })} />
    </div>
    <${List} path="patients/" query=${{ search: query.search, active: query.active }} ordering="last_name" caption="Patients"
      nothing="No patients match" open=${open} columns=${[
      { name: "name", head: "Name", order: "last_name", cell: (p) => html`<bdi>${p.last_name}, ${p.first_name}</bdi>` },
      { name: "mrn", head: "MRN" },
      { name: "date_of_birth", head: "Date of birth", cell: (p) => calendarDate(p.date_of_birth) },
      { name: "gender", head: "Gender", cell: (p) => humanize(p.gender) },
      { name: "programs", head: "Diagnoses", cell: (p) => p.icd10_codes.join(", ") || "–" },
      { name: "status", head: "Status", cell: (p) => html`<${Badge} of=${p.status} />
        ${p.hold && html` <${HoldBadge} hold=${p.hold} />`}
        ${p.needs_thresholds && html` <${Badge} of="warning" text="Needs thresholds" />`}
        ${p.provisional?.length > 0 && html` <${Badge} of="warning" text="Provisional limits" />`}
        ${p.needs_target_weight && html` <${Badge} of="warning" text="Needs a dry weight" />`}` },
    ]} />`;
}

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
