// The last step: the first reading arrives automatically from the device.
import { get } from "../../api.js";
import { go } from "../../router.js";
import { dateTime } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { ZoneNote } from "../../ui/time.js";
import { html } from "../../view.js";
import { steps, statusOf } from "./steps.js";

/** @param {import("./steps.js").StepProps} props */
export function Reading({ patient, standing }) {
  const list = useLoad((signal) => get("devices/", { patient_id: patient.id, page_size: 50 }, signal), [patient.id]);
  const come = standing && statusOf(standing, steps[steps.length - 1]).state === "done";
  return html`<${Loaded} from=${list}>${({ results }) => html`
    <p>${come ? "The first reading has arrived." : results.length === 0 ? "No device is assigned yet."
      : html`Waiting for the device. No action is needed. Monitoring counts from the first reading that the device sends; readings entered
        by
        hand do not count.`}</p>
    ${results.length > 0 && html`<ul class="enrol-held">${results.map((d) => html`<li
      key=${d.device_id}><strong>${d.device_id}</strong> ${d.last_reading_at ? dateTime(d.last_reading_at) : "no readings yet"}</li>`)}</ul>
        <${ZoneNote} />`}
    <div class="actions"><button type="button" class="main"
      onClick=${() => go("patient", { id: patient.id })}>Open chart</button></div>`}
  </${Loaded}>`;
}
