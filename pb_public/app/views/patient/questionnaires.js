// Questionnaires of a patient: assigning one, recording the answers on the phone, and the answers over time.
import { call, get, post, remove } from "../../api.js";
import { can } from "../../permissions.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { calendarDate, dateTime, humanize } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { Table } from "../../ui/table.js";
import { daysAgo } from "../../ui/time.js";
import { toast } from "../../ui/toast.js";
import { html, useRef, useState } from "../../view.js";

/** @type {Record<string, string>} */
const names = { "phq-2": "PHQ-2 (depression screen)", "heart-failure-zone": "Heart failure check" };

/** The tone of a result. @type {Record<string, string>} */
const tones = { red: "critical", yellow: "warning", positive: "warning" };

/** @param {{id: string}} props */
export function Questionnaires({ id }) {
  const list = useLoad((signal) => get(`patients/${id}/questionnaires/`, { page_size: 100 }, signal), [id]);
  const [dialog, setDialog] = useState(/** @type {any} */ (null)); // "assign", or the assignment that is answered
  const close = () => setDialog(null);
  const may = can("assignQuestionnaires");
  return html`<section class="card" aria-labelledby="questionnaires">
    <div class="heading"><h2 id="questionnaires">Questionnaires</h2>${may && html`<button
      onClick=${() => setDialog("assign")}>Assign</button>`}</div>
    <${Loaded} from=${list}>${(data) => (data.results.length === 0 ? html`<p>None assigned.</p>` : data.results.map((one) => html`
      <article key=${one.id}><div class="heading"><h3>${names[one.questionnaire]}</h3>
        ${may && one.due_on && html`<button aria-label=${`Record answers: ${names[one.questionnaire]}`}
          onClick=${() => setDialog(one)}>Record answers</button>
          <${ActionButton} act=${() => remove(`patients/${id}/questionnaires/${one.id}/`)} doneText="Ended." done=${list.reload}
            aria-label=${`End: ${names[one.questionnaire]}`}>End</${ActionButton}>`}</div>
        <p>${state(one)}</p>
        ${one.responses.length > 0 && html`<${Table} caption=${`Answers, ${names[one.questionnaire]}`} rows=${one.responses} columns=${[
          { name: "authored_at", head: "When", cell: (r) => dateTime(r.authored_at) },
          { name: "result", head: "Result", cell: (r) => html`<${Badge} of=${tones[r.result]}
            text=${`${humanize(r.result)}${r.score === null ? "" : `, ${r.score}`}`} />` },
          { name: "answers", head: "Answers", cell: (r) => complaints(one, r) },
          { name: "source", head: "By", cell: (r) => humanize(r.source) },
        ]} />`}</article>`))}</${Loaded}>
    ${dialog === "assign" && html`<${AssignDialog} id=${id} close=${close} done=${list.reload} />`}
    ${dialog && dialog !== "assign" && html`<${AnswerDialog} id=${id} assigned=${dialog} close=${close} done=${list.reload} />`}
  </section>`;
}

/** @param {any} one */
function state(one) {
  const often = one.every_days ? `Every ${one.every_days} days` : "Once";
  return `${often}${one.until ? ` until ${calendarDate(one.until)}` : ""}. ${one.ended_at ? `Ended ${dateTime(one.ended_at)}.`
    : !one.due_on ? "Finished." : one.due ? "Due now." : `Next on ${calendarDate(one.due_on)}.`}`;
}

/** The answers other than the first option of an item, in words. @param {any} one @param {any} response */
const complaints = (one, response) => response.answers.flatMap((/** @type {any} */ { item, value }) => {
  const asked = one.items.find((/** @type {any} */ i) => i.item === item);
  const at = asked?.values.findIndex((/** @type {any} */ v) => v.value === value) ?? 0;
  return at > 0 ? [`${asked.text.en} ${asked.values[at].text.en}.`] : [];
}).join(" ") || "No complaints";

/** @param {{id: string, close: () => void, done: () => void}} props */
const AssignDialog = ({ id, close, done }) => html`<${Dialog} title="Assign a questionnaire" close=${close}>
  <${Form} submit="Assign" cancel=${close} send=${(/** @type {any} */ v) => post(`patients/${id}/questionnaires/`, {
    ...v, every_days: v.every_days ? Number(v.every_days) : null })}
    done=${() => { toast("Assigned."); close(); done(); }}>${(errors) => html`
    <${Field} label="Questionnaire" name="questionnaire" kind="select" value="phq-2" options=${Object.entries(names)} errors=${errors} />
    <${Field} label="Every … days" name="every_days" kind="number" min="1" max="90" hint="Leave blank for once" errors=${errors} />
    <${Field} label="Last day" name="until" kind="date" min=${daysAgo(0)} hint="Leave blank for no end" errors=${errors} />`}</${Form}>
</${Dialog}>`;

/** Stays open with what the patient should do. @param {{id: string, assigned: any, close: () => void, done: () => void}} props */
function AnswerDialog({ id, assigned, close, done }) {
  const [saved, setSaved] = useState(/** @type {any} */ (null));
  const attempt = useRef({ body: "", key: "" }); // a second attempt with the same answers has the same key
  const name = (/** @type {number} */ at) => `answers.${at}.value`;
  const send = (/** @type {any} */ values) => {
    const answers = assigned.items.map((/** @type {any} */ { item }, /** @type {number} */ at) => ({ item, value: values[name(at)] }));
    const body = JSON.stringify(answers);
    attempt.current = body === attempt.current.body ? attempt.current : { body, key: crypto.randomUUID() };
    return call("POST", `patients/${id}/questionnaires/${assigned.id}/answers/`,
      { headers: { "Idempotency-Key": attempt.current.key }, body: { answers } });
  };
  return html`<${Dialog} title=${names[assigned.questionnaire]} close=${close}>${saved
    ? html`<div role="status"><p><${Badge} of=${tones[saved.result]} text=${humanize(saved.result)} /></p>
      <p>For the patient: “${saved.advice.en}”</p></div><button class="main" onClick=${close}>Close</button>`
    : html`<p>${assigned.introduction.en}</p>
      <${Form} submit="Save" cancel=${close} send=${send} done=${(/** @type {any} */ answer) => { setSaved(answer); done(); }}>${(errors) =>
        assigned.items.map((/** @type {any} */ one, /** @type {number} */ at) => html`<${Field} key=${one.item} label=${one.text.en}
          name=${name(at)} kind="select" value="" errors=${errors}
          options=${[["", "Choose"], ...one.values.map((/** @type {any} */ v) => [v.value, v.text.en])]} />`)}</${Form}>`}
  </${Dialog}>`;
}
