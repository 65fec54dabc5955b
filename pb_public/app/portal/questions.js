// Questionnaires: which are due, the form that answers one, and what to do afterwards.
import { call, get } from "../api.js";
import { useLoad } from "../ui/states.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { t, tDay, tText } from "./words.js";

/** How a result is shown. @type {Record<string, string>} */
const looks = { green: "good", yellow: "warning", positive: "warning", red: "problem" };

/** Nothing without a questionnaire. @param {{id: string, mayEnter: boolean}} props */
export function Questions({ id, mayEnter }) {
  const list = useLoad((signal) => get(`patients/${id}/questionnaires/`, { page_size: 100 }, signal), [id]);
  const [openId, setOpenId] = useState(0);
  const [reply, setReply] = useState(/** @type {any} */ (null));
  const assigned = /** @type {any[]} */ (list.data?.results ?? []);
  if (assigned.length === 0 && !reply) {
    return null;
  }
  const shown = assigned.find((one) => one.id === openId);
  const done = (/** @type {any} */ saved) => { setOpenId(0); setReply(saved); list.reload(); };
  return html`<section class="card" aria-labelledby="questions"><h2 id="questions">${t("questions")}</h2>
    <div role="alert">${reply && html`<p class=${`notice ${looks[reply.result] ?? ""}`}>${tText(reply.advice)}</p>`}</div>
    ${shown ? html`<${Answers} key=${shown.id} patient=${id} assigned=${shown} done=${done} cancel=${() => setOpenId(0)} />`
      : html`<ul class="plain-list">${assigned.map((one) => html`<li key=${one.id}>
        <span><strong>${tText(one.title)}</strong><br />${one.due ? t("dueNow") : t("dueOn", { day: tDay(one.due_on) })}</span>
        ${mayEnter && html`<button class=${one.due ? "main" : ""} aria-label=${t("answerOne", { name: tText(one.title) })}
          onClick=${() => { setReply(null); setOpenId(one.id); }}>${t("answer")}</button>`}</li>`)}</ul>`}
  </section>`;
}

/** @param {{patient: string, assigned: any, done: (saved: any) => void, cancel: () => void}} props */
function Answers({ patient, assigned, done, cancel }) {
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const key = useRef("");
  const first = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => first.current?.focus(), []);
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const answers = [...form].map(([item, value]) => ({ item, value }));
    if (answers.length < assigned.items.length) {
      return setProblem(t("answerAll"));
    }
    key.current ||= crypto.randomUUID(); // a second attempt is the same answers
    setBusy(true);
    try {
      done(await call("POST", `patients/${patient}/questionnaires/${assigned.id}/answers/`,
        { body: { answers }, headers: { "Idempotency-Key": key.current } }));
    } catch {
      setProblem(t("notSaved"));
      setBusy(false);
    }
  };
  return html`<form onSubmit=${submit} onInput=${() => { key.current = ""; setProblem(""); }} novalidate>
    <h3 tabindex="-1" ref=${first}>${tText(assigned.title)}</h3><p>${tText(assigned.introduction)}</p>
    ${assigned.items.map((/** @type {any} */ { item, text, values }) => html`<fieldset class="question" key=${item}>
      <legend>${tText(text)}</legend>${values.map((/** @type {any} */ one) => html`<label key=${one.value}>
        <input type="radio" name=${item} value=${one.value} /><span>${tText(one.text)}</span></label>`)}</fieldset>`)}
    <p role="alert" class=${problem ? "notice problem" : ""}>${problem}</p>
    <div class="actions"><button type="button" class="quiet" onClick=${cancel}>${t("cancel")}</button>
      <button class="main" disabled=${isBusy}>${t(isBusy ? "saving" : "send")}</button></div>
    ${assigned.copyright && html`<p lang="en"><small>${assigned.copyright}</small></p>`}
  </form>`;
}
