// One enrollment: steps on the left, the current step in the middle, missing items and readiness on the right.
import { get } from "../../api.js";
import { listen } from "../../live.js";
import { go, updateAbout } from "../../router.js";
import { ageAndSex } from "../../ui/age.js";
import { calendarDate } from "../../ui/format.js";
import { Failed, useLoad, Waiting } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { classes, html, useEffect, useRef } from "../../view.js";
import { Proposals, useChart } from "../patient/chart_context.js";
import { Readiness } from "./readiness.js";
import { Consent } from "./consent.js";
import { Device } from "./device.js";
import { Order } from "./order.js";
import { Payer } from "./payer.js";
import { Person } from "./person.js";
import { Reading } from "./reading.js";
import { firstMissing, nextOf, steps, statusOf } from "./steps.js";
import { ThresholdsStep } from "./thresholds.js";

/** The component of each step. @type {Record<string, (props: import("./steps.js").StepProps) => any>} */
const shows = { person: Person, consent: Consent, payer: Payer, order: Order, thresholds: ThresholdsStep, device: Device,
  reading: Reading };

/** What the EMR may propose in a step. @type {Record<string, string[]>} */
const proposed = { payer: ["insurance"], order: ["order", "established_visit", "diagnosis"] };

/** @param {{id: string | null, step?: string}} props id is null for a new patient */
export function Path({ id, step }) {
  const patient = useLoad((signal) => (id ? get(`patients/${id}/`, {}, signal) : Promise.resolve(null)), [id]);
  const standing = useLoad((signal) => (id ? get(`patients/${id}/enrolment/`, {}, signal) : Promise.resolve(null)), [id]);
  const chart = useChart(patient.data);
  const middle = useRef(/** @type {HTMLElement | null} */ (null));
  const firstStep = useRef("");
  const changed = () => { patient.reload(); standing.reload(); };
  useEffect(() => (id ? listen("patient", ({ data }) => { data.patient_id === id && standing.reload(); }) : undefined), [id]);
  const problem = patient.problem ?? standing.problem;
  if (id && problem && (patient.data === null || standing.data === null)) {
    return html`<${Failed} problem=${problem} retry=${changed} />`;
  }
  if (id && (patient.data === null || standing.data === null)) {
    return html`<${Waiting} />`;
  }
  if (standing.data) { // once: changes by others do not move the user to another step
    firstStep.current ||= firstMissing(standing.data);
  }
  const at = steps.find((one) => one.step === (step ?? firstStep.current)) ?? steps[0];
  const turn = (/** @type {string} */ to) => {
    updateAbout({ step: to });
    setTimeout(() => middle.current?.querySelector("h2")?.focus()); // for screen readers; Tab moves to the first field
  };
  const saved = async (/** @type {string | undefined} */ made) => {
    toast("Saved.");
    const now = await get(`patients/${made ?? id}/enrolment/`);
    if (made) {
      return go("enrolment", { id: made, step: nextOf(now, at.step) });
    }
    changed();
    turn(nextOf(now, at.step));
  };
  const place = steps.indexOf(at);
  const next = steps[place + 1];
  const Work = shows[at.step];
  return html`<div class="enrol">
    <${Head} patient=${patient.data} standing=${standing.data} />
    <${StepList} at=${at.step} standing=${standing.data} turn=${turn} />
    <section class="enrol-work" aria-labelledby="enrol-step" ref=${middle}>
      <h2 id="enrol-step" tabindex="-1">${at.name}</h2>
      ${proposed[at.step] && html`<${Proposals} chart=${chart} patient=${patient.data} only=${proposed[at.step]} changed=${changed} />`}
      <${Work} key=${`${at.step} ${patient.data?.updated_at ?? ""}`} patient=${patient.data} standing=${standing.data} saved=${saved}
        changed=${changed}
        submit=${next && id !== null ? `Save and continue to ${next.name.toLowerCase()}` : "Save and continue"} />
      ${id && html`<div class="enrol-nav">
        ${place > 0 && html`<button type="button" class="quiet"
          onClick=${() => turn(steps[place - 1].step)}>‹ ${steps[place - 1].name}</button>`}
        ${next && html`<button type="button"
          onClick=${() => turn(next.step)}>${statusOf(standing.data, at).state === "missing" ? "Skip for now" : `${next.name} ›`}</button>`}
            </div>`}
    </section>
    ${id ? html`<${Readiness} standing=${standing.data} patient=${patient.data} turn=${turn} />` : html`<aside class="enrol-aside"><div
      class="card">
      <h3>Name and date of birth are required</h3><p
        class="soft">Complete the other steps in any order, today or later. Missing items are listed on the patient’s
          chart until they are done.</p>
          </div></aside>`}
  </div>`;
}

/** @param {{patient: any, standing: import("./steps.js").Standing | null}} props */
function Head({ patient: p, standing }) {
  const done = steps.filter((one) => statusOf(standing, one).state === "done").length;
  return html`<header class="enrol-head">
    <h1>${p ? html`<bdi>${`${p.first_name ?? ""} ${p.last_name ?? ""}`.trim()}</bdi>` : "New patient"}</h1>
    ${p && html`<span class="soft">${ageAndSex(p)} · born ${calendarDate(p.date_of_birth)} · ${p.mrn}</span>`}
    ${p?.external_id && html`<span class="badge"><span aria-hidden="true">✓</span> Linked to the EMR</span>`}
    <div class="enrol-progress">
      ${standing && html`<span>${done} of ${steps.length} done</span><progress max=${steps.length} value=${done}
        aria-label="Steps done"></progress>`}
      <button onClick=${() => (p ? go("patient", { id: p.id }) : history.back())}>${p ? "Save and exit" : "Exit"}</button>
    </div>
  </header>`;
}

/** @param {{at: string, standing: import("./steps.js").Standing | null, turn: (step: string) => void}} props */
const StepList = ({ at, standing, turn }) => html`<nav class="enrol-rail" aria-label="Enrollment steps"><ol>${steps.map((one, i) => {
  const { state, missing } = statusOf(standing, one);
  return html`<li key=${one.step}><button type="button" class=${classes("step", state)} aria-current=${one.step === at ? "step" : null}
    disabled=${!standing && one.step !== at} onClick=${() => turn(one.step)}>
    <span class="sign" aria-hidden="true">${state === "done" ? "✓" : state === "missing" && one.step !== at ? "◆" : i + 1}</span>
    <strong>${one.name}</strong>
    <span class=${classes("badge", { done: "good", missing: "warning" }[state])}>${{ done: "Done", missing: `${missing.length} missing`,
      waiting: "Waiting", later: "Later" }[state]}</span>
    <small>${missing[0]?.detail ?? one.about}</small></button></li>`;
})}</ol><p
  class="soft">Steps can be done in any order. Monitoring starts with the device. Missing items are listed on the patient’s
    chart.</p></nav>`;
