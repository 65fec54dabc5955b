// The patient portal: readings, devices, consents, and entering a reading.
import { get } from "../api.js";
import { Badge } from "../ui/badge.js";
import { ago, dateTime, humanize } from "../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../ui/states.js";
import { List } from "../ui/table.js";
import { isCounted, kindNames, readingText } from "../ui/vitals.js";
import { html, useState } from "../view.js";
import { Devices } from "./patient/devices.js";
import { ReadingDialog } from "./patient/enter_reading.js";
import { Consents } from "./patient/team.js";
import { Vitals } from "./patient/vitals.js";

export function MyHealth() {
  const self = useLoad(async (signal) => (await get("patients/", { page_size: 1 }, signal)).results[0] ?? false, []);
  return html`<${Loaded} from=${self} empty=${(data) => data === false} nothing=${html`<${EmptyState} title="No record yet">
    Your practice has not linked this account to your record. Please call them.</${EmptyState}>`}>
    ${(patient) => html`<${Mine} patient=${patient} />`}
  </${Loaded}>`;
}

/** @param {{patient: any}} props */
function Mine({ patient }) {
  const [isEntering, setEntering] = useState(false);
  const [revision, setRevision] = useState(0);
  return html`<div class="heading"><h1>My readings</h1><button class="main"
    onClick=${() => setEntering(true)}>Enter a reading</button></div>
    <p class="notice">Your practice reviews these readings during office hours. In an emergency, call 911.</p>
    <${Latest} id=${patient.id} turn=${revision} />
    <div class="sheet"><${Vitals} id=${patient.id} turn=${revision} thresholds />
    <section class="card" aria-labelledby="mine"><h2 id="mine">All my readings</h2>
      <${List} path="ingestion/observations/" query=${{ patient_id: patient.id }} turn=${revision} caption="My readings"
        nothing="No readings yet" columns=${[
        { name: "measured_at", head: "Measured", cell: (o) => dateTime(o.measured_at) }, { name: "kind", head: "Kind", cell: (o) =>
          kindNames[o.observation_type] },
        { name: "reading", head: "Reading", cell: (o) => html`${readingText(o)}${o.status === "entered_in_error"
          && html` <${Badge} of="entered_in_error" />`}${o.status === "final" && !isCounted(o)
          && html` <${Badge} of="suspect" text="not confirmed" />`}` },
        { name: "source", head: "From", cell: (o) => humanize(o.source) },
      ]} />
    </section>
    <${Devices} id=${patient.id} />
    <${Consents} id=${patient.id} /></div>
    ${isEntering && html`<${ReadingDialog} patient=${patient.id} close=${() => setEntering(false)}
      done=${() => setRevision(revision + 1)} />`}`;
}

/** The newest reading of each kind in large type. @param {{id: string, turn: number}} props */
function Latest({ id, turn }) {
  const list = useLoad((signal) => get("ingestion/observations/", { patient_id: id, page_size: 50 }, signal), [id, turn]);
  const newest = Object.keys(kindNames).map((kind) =>
    list.data?.results.find((o) => o.observation_type === kind && isCounted(o))).filter(Boolean);
  return newest.length > 0
    && html`<dl class="numbers">${newest.map((o) => html`<div key=${o.id}><dt>${kindNames[o.observation_type]}, ${ago(o.measured_at)}</dt>
    <dd>${readingText(o)}</dd></div>`)}</dl>`;
}
