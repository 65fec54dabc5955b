// The patient portal: readings, devices, consents, and entering a reading.
import { get } from "../api.js";
import { Badge } from "../ui/badge.js";
import { ago, dateTime, words } from "../ui/format.js";
import { Loaded, Nothing, useLoad } from "../ui/states.js";
import { List } from "../ui/table.js";
import { counts, kinds, reading } from "../ui/vitals.js";
import { html, useState } from "../view.js";
import { Devices } from "./patient/devices.js";
import { ReadingDialog } from "./patient/enter_reading.js";
import { Consents } from "./patient/team.js";
import { Vitals } from "./patient/vitals.js";

export function MyHealth() {
  const self = useLoad(async (signal) => (await get("patients/", { page_size: 1 }, signal)).results[0] ?? false, []);
  return html`<${Loaded} from=${self} empty=${(data) => data === false} nothing=${html`<${Nothing} title="No record yet">
    Your practice has not linked this account to your record. Please call them.</${Nothing}>`}>
    ${(patient) => html`<${Mine} patient=${patient} />`}
  </${Loaded}>`;
}

/** @param {{patient: any}} props */
function Mine({ patient }) {
  const [entering, enter] = useState(false);
  const [turn, next] = useState(0);
  return html`<div class="heading"><h1>My readings</h1><button class="main" onClick=${() => enter(true)}>Enter a reading</button></div>
    <p class="notice">Your practice reviews these readings during office hours. In an emergency, call 911.</p>
    <${Latest} id=${patient.id} turn=${turn} />
    <div class="sheet"><${Vitals} id=${patient.id} turn=${turn} thresholds />
    <section class="card" aria-labelledby="mine"><h2 id="mine">All my readings</h2>
      <${List} path="ingestion/observations/" query=${{ patient_id: patient.id }} turn=${turn} caption="My readings"
        nothing="No readings yet" columns=${[
        { name: "measured_at", head: "Measured", cell: (o) => dateTime(o.measured_at) }, { name: "kind", head: "Kind", cell: (o) =>
          kinds[o.observation_type] },
        { name: "reading", head: "Reading", cell: (o) => html`${reading(o)}${o.status === "entered_in_error"
          && html` <${Badge} of="entered_in_error" />`}${o.status === "final" && !counts(o)
          && html` <${Badge} of="suspect" text="not confirmed" />`}` },
        { name: "source", head: "From", cell: (o) => words(o.source) },
      ]} />
    </section>
    <${Devices} id=${patient.id} />
    <${Consents} id=${patient.id} /></div>
    ${entering && html`<${ReadingDialog} patient=${patient.id} close=${() => enter(false)} done=${() => next(turn + 1)} />`}`;
}

/** The newest reading of each kind in large type. @param {{id: string, turn: number}} props */
function Latest({ id, turn }) {
  const list = useLoad((signal) => get("ingestion/observations/", { patient_id: id, page_size: 50 }, signal), [id, turn]);
  const newest = Object.keys(kinds).map((kind) => list.data?.results.find((o) => o.observation_type === kind && counts(o))).filter(Boolean);
  return newest.length > 0
    && html`<dl class="numbers">${newest.map((o) => html`<div key=${o.id}><dt>${kinds[o.observation_type]}, ${ago(o.measured_at)}</dt>
    <dd>${reading(o)}</dd></div>`)}</dl>`;
}
