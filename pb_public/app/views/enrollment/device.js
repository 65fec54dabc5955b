// The device step: the patient's devices, their setup, and the expected readings.
import { get, patch, post } from "../../api.js";
import { can } from "../../permissions.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Field, Form } from "../../ui/form.js";
import { day, humanize } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { kindNames } from "../../ui/vitals.js";
import { html, useRef } from "../../view.js";
import { nested, ScheduleFields, scheduleOf, runAll } from "./fields.js";

/** @param {{errors: Record<string, string[]>, autofocus?: boolean}} props */
export const DeviceFields = ({ errors, autofocus }) => html`<div class="fields">
    <${Field} label="Device number" name="device_id" hint="As printed on the device" autocomplete="off" errors=${errors}
      autofocus=${autofocus} />
    <${Field} label="Kind" name="device_type" kind="select" value="blood_pressure" options=${Object.entries(kindNames)} errors=${errors} />
  </div>
  <details><summary>Manufacturer, serial number, shipping address</summary><div class="fields">
    <${Field} label="Manufacturer" name="manufacturer" hint="Sent to the EMR with the readings, as are the next three" errors=${errors} />
    <${Field} label="Model" name="model" errors=${errors} />
    <${Field} label="Serial number" name="serial_number" errors=${errors} />
    <${Field} label="UDI" name="udi" errors=${errors} />
    <${Field} label="Shipping address" name="shipping_address" hint="Leave blank to use the patient’s" errors=${errors} />
  </div></details>`;

/** @param {any} v the values of the form @param {string} patient */
export const assignmentOf = ({ device_id, device_type, manufacturer, model, serial_number, udi, shipping_address }, patient) =>
  ({ device_id: device_id ?? "", device_type, manufacturer, model, serial_number, udi, shipping_address, patient_id: patient });

const setUp = (/** @type {string} */ device) => post(`devices/${encodeURIComponent(device)}/setup-complete/`, {});

/** @param {import("./steps.js").StepProps} props */
export function Device({ patient, submit, saved, changed }) {
  const list = useLoad((signal) => get("devices/", { patient_id: patient.id, page_size: 50 }, signal), [patient.id]);
  const done = useRef(new Set());
  const again = () => { list.reload(); changed(); };
  const give = async (/** @type {any} */ v) => {
    if (!done.current.has(`given ${v.device_id}`)) {
      await post("devices/assign/", assignmentOf(v, patient.id));
      done.current.add(`given ${v.device_id}`);
    }
    if (v.taught) {
      await setUp(v.device_id);
    }
  };
  const send = (/** @type {any} */ v, /** @type {boolean} */ has) => {
    const schedule = scheduleOf(v.schedule_mode, nested(v).monitoring_schedule, patient.monitoring_schedule);
    done.current.delete("schedule");
    return runAll([
      ...(v.device_id || !has ? [{ key: `device ${v.device_id}`, act: () => give(v) }] : []),
      { key: "schedule", act: () => patch(`patients/${patient.id}/`, { monitoring_schedule: schedule }) },
    ], done.current);
  };
  return html`<${Loaded} from=${list}>${({ results }) => {
    const has = results.length > 0;
    return html`${has && html`<ul class="enrol-held">${results.map((d) => html`<li
      key=${d.device_id}><strong>${kindNames[d.device_type] ?? humanize(d.device_type)}</strong> ${d.device_id}
        <${Badge} of=${d.status} /> ${d.setup_completed_at ? html`<span class="badge good"><span
          aria-hidden="true">✓</span> Set up ${day(d.setup_completed_at)}</span>`
          : can("assignDevices") && html`<${ActionButton} act=${() => setUp(d.device_id)} doneText="Setup recorded." done=${again}
            aria-label=${`Mark as set up (99453): ${d.device_id}`}>Mark as set up (99453)</${ActionButton}>`}</li>`)}</ul>`}
      <${Form} submit=${submit} send=${(v) => send(v, has)} done=${() => saved()}>${(errors) => html`
        ${has ? html`<details><summary>Another device</summary><${New} errors=${errors} /></details>` : html`<${New} errors=${errors} />`}
        <${ScheduleFields} schedule=${patient.monitoring_schedule} errors=${errors} />`}</${Form}>`;
  }}</${Loaded}>`;
}

/** @param {{errors: Record<string, string[]>}} props */
const New = ({ errors }) => html`<${DeviceFields} errors=${errors} />
  <${Field} label="Device is set up and the patient was taught to use it (99453)" name="taught" kind="checkbox" errors=${errors} />`;
