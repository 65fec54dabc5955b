// The devices of a patient: assign, unassign, replace, and record setup.
import { get, post } from "../../api.js";
import { can } from "../../permissions.js";
import { Badge } from "../../ui/badge.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { ago, dateTime, day, humanize } from "../../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { kindNames } from "../../ui/vitals.js";
import { instantOf, localInput } from "../../ui/time.js";
import { html, useState } from "../../view.js";
import { assignmentOf, DeviceFields } from "../enrollment/device.js";

/** @param {{id: string, active?: boolean, changed?: () => void}} props */
export function Devices({ id, active = true, changed = () => {} }) {
  const [dialog, setDialog] = useState(/** @type {{act: string, device?: any} | null} */ (null));
  const list = useLoad((signal) => get("devices/", { patient_id: id, page_size: 50 }, signal), [id]);
  const DialogComponent = dialog && dialogs[dialog.act];
  return html`<section aria-labelledby="devices">
    <div class="heading"><h2 id="devices">Devices</h2>${active && can("assignDevices")
      && html`<button class="main" onClick=${() => setDialog({ act: "assign" })}>Assign a device</button>`}</div>
    <${Loaded} from=${list} empty=${(data) => data.results.length === 0} nothing=${html`<${EmptyState} title="No devices yet" />`}>
      ${(data) =>
        html`<ul class="grid plain-grid">${data.results.map((device) =>
        html`<li class="card" key=${device.device_id}><${Device} device=${device} setDialog=${setDialog} /></li>`)}</ul>`}
    </${Loaded}>
    ${DialogComponent && html`<${DialogComponent} patient=${id} device=${dialog.device} close=${() => setDialog(null)}
      done=${() => { list.reload(); changed(); }} />`}
  </section>`;
}

/** @param {{device: any, setDialog: (what: any) => void}} props */
const Device = ({ device: d, setDialog }) => html`
  <h3>${kindNames[d.device_type] ?? humanize(d.device_type)}</h3>
  <p><${Badge} of=${d.status} /> <${Battery} level=${d.battery_level} state=${d.battery_state} />${d.flagged
    && html` <span class="badge warning"><span aria-hidden="true">◆</span> ${humanize(d.flag_reason ?? "flagged")}</span>`}</p>
  <dl class="facts">${[["Device", d.device_id], ["Model", [d.manufacturer, d.model].filter(Boolean).join(" ") || "–"],
    ...(d.reported_model && d.reported_model !== d.model ? [["Reported model", d.reported_model]] : []),
    ["Serial number", d.serial_number ?? "–"], ["Assigned", day(d.assigned_at)], ["Last reading", ago(d.last_reading_at)],
    ["Set up", d.setup_completed_at ? day(d.setup_completed_at) : "not recorded"]]
    .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
  ${can("assignDevices") && html`<div class="actions">
    ${!d.setup_completed_at && html`<button onClick=${() => setDialog({ act: "setUp", device: d })}
      aria-label=${`Record setup (99453) of ${d.device_id}`}>Record setup (99453)</button>`}
    <button onClick=${() => setDialog({ act: "replace", device: d })} aria-label=${`Replace ${d.device_id}`}>Replace</button>
    <button onClick=${() => setDialog({ act: "unassign", device: d })} aria-label=${`Unassign ${d.device_id}`}>Unassign</button>
  </div>`}`;

/** @param {{level: number | null, state: string | null}} props */
const Battery = ({ level, state }) => (level === null ? html`<small>Battery not reported yet</small>`
  : html`<span class="battery"><meter min="0" max="100" low="20" value=${level} aria-label="Battery"></meter> ${level} %${state
    && state !== "normal" ? html` <${Badge} of=${state} text=${`Battery ${state}`} />` : ""}</span>`);

/** @typedef {{patient: string, device?: any, close: () => void, done: () => void}} Props */

/** @param {string} text @param {Props} props */
const closeWith = (text, { close, done }) => () => { toast(text); close(); done(); };

const dialogs = {
  /** @param {Props} props */
  assign: (props) => html`<${Dialog} title="Assign a device" close=${props.close}>
    <${Form} submit="Assign" cancel=${props.close} done=${closeWith("Assigned.", props)} send=${(values) =>
      post("devices/assign/", assignmentOf(values, props.patient))}>${(errors) => html`
      <${DeviceFields} errors=${errors} autofocus />`}
    </${Form}>
  </${Dialog}>`,
  /** @param {Props} props */
  unassign: (props) => html`<${Dialog} title=${`Unassign ${props.device.device_id}`} close=${props.close}>
    <${Form} submit="Unassign" danger cancel=${props.close} done=${closeWith("Unassigned.", props)} send=${(values) =>
      post(`devices/${encodeURIComponent(props.device.device_id)}/unassign/`, { reason: values.reason ?? "" })}>${(errors) => html`
      <${Field} label="Reason" name="reason" errors=${errors} />`}
    </${Form}>
  </${Dialog}>`,
  /** @param {Props} props */
  replace: (props) => html`<${Dialog} title=${`Replace ${props.device.device_id}`} close=${props.close}>
    <${Form} submit="Replace" cancel=${props.close} done=${closeWith("Replaced.", props)}
      send=${(values) => post(`devices/${encodeURIComponent(props.device.device_id)}/replace/`, { new_device_id: values.new_device_id ?? "",
        reason: values.reason ?? "" })}>${(errors) => html`
      <${Field} label="New device number" name="new_device_id" errors=${errors} />
      <${Field} label="Reason" name="reason" errors=${errors} />`}
    </${Form}>
  </${Dialog}>`,
  /** @param {Props} props */
  setUp: (props) => html`<${Dialog} title=${`Setup of ${props.device.device_id}`} close=${props.close}>
    <p>The device is set up and the patient was taught to use it. Setup can be billed once (99453).</p>
    <${Form} submit="Record" cancel=${props.close} done=${closeWith("Setup recorded.", props)}
      send=${(values) => post(`devices/${encodeURIComponent(props.device.device_id)}/setup-complete/`,
        { completed_at: instantOf(values.completed_at), notes: values.notes })}>${(errors) => html`
      <${Field} label="When" name="completed_at" kind="datetime-local" value=${localInput()} errors=${errors} />
      <${Field} label="Note" name="notes" kind="textarea" hint=${`Assigned ${dateTime(props.device.assigned_at)}`} errors=${errors} />`}
    </${Form}>
  </${Dialog}>`,
};
