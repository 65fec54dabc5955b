// Today's task, and entering a reading: a question before an unlikely value is sent, and a sentence after it is saved.
import { post } from "../api.js";
import { asProblem } from "../ui/states.js";
import { valuesOf } from "../ui/form.js";
import { stored, unitOf } from "../ui/units.js";
import { vitals } from "../ui/vitals.js";
import { classes, html, useRef, useState } from "../view.js";
import { unlikelyFields, Value, valueText, verdictOf } from "./readings.js";
import { language } from "../language.js";
import { t, tCode, tTime } from "./words.js";
import { practice } from "../session.js";

/** @param {{patient: string, mayEnter: boolean, newest: any, isDone: boolean, zone: string | undefined, thresholds: any,
 *  saved: () => void}} props */
export function Today({ patient, mayEnter, newest, isDone, zone, thresholds, saved }) {
  const [isOpen, setOpen] = useState(false);
  const [message, setMessage] = useState(/** @type {any} */ (null)); // the saved reading, or held
  const isAgain = message && !message.held && verdictOf(message, thresholds) !== "savedGood";
  const done = (/** @type {any} */ answer) => { setOpen(false); setMessage(answer); saved(); };
  return html`<section class="card" aria-labelledby="today"><h2 id="today">${t("today")}</h2>
    ${!isOpen && !message && html`<p class=${classes("task", mayEnter && isDone && "done")}>${
      t(!mayEnter ? "readOnly" : isDone ? "measured" : "measure")}</p>
      ${newest && html`<p class="portal-last"><small>${t("last")}: ${tTime(newest.measured_at, zone, "moment")}</small>
        <${Value} of=${newest} /></p>`}`}
    <div role="status">${message && html`<${Saved} answer=${message} thresholds=${thresholds} />`}</div>
    ${mayEnter && (isOpen ? html`<${Entry} patient=${patient} done=${done} cancel=${() => setOpen(false)} />`
      : html`<button class=${isDone && !isAgain ? "" : "main"} onClick=${() => { setMessage(null); setOpen(true); }}>${
        t(isAgain ? "measureAgain" : "enter")}</button>`)}
    <p class="emergency-line">${t("emergency")}</p>
  </section>`;
}

/** @param {{answer: any, thresholds: any}} props */
function Saved({ answer, thresholds }) {
  if (answer.held) {
    return html`<p class="notice warning">${t("held")}</p>`;
  }
  const verdict = verdictOf(answer, thresholds);
  const isFine = verdict === "savedGood" || verdict === "savedPlain";
  return html`<div class=${`notice ${verdict === "savedHigh" || verdict === "savedLow" ? "problem" : isFine ? "good" : "warning"}`}>
    <p>${t(verdict, { value: valueText(answer) })}</p>${!isFine && html`<p>${t("restHint")}</p>
      <p>${practice.value.portal_advice[language.value] ?? t("whatNow")}</p><p><strong>${t("call911")}</strong></p>`}</div>`;
}

/** @param {{patient: string, done: (answer: any) => void, cancel: () => void}} props */
function Entry({ patient, done, cancel }) {
  const [kind, setKind] = useState("blood_pressure");
  const [confirmed, setConfirmed] = useState("");
  const [problem, setProblem] = useState("");
  const [wrong, setWrong] = useState(/** @type {string[]} */ ([]));
  const [isBusy, setBusy] = useState(false);
  const measuredAt = useRef("");
  const show = (/** @type {string} */ text, /** @type {string[]} */ fields) => { setProblem(text); setWrong(fields); };
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    const typed = valuesOf(event.currentTarget);
    const body = Object.fromEntries(vitals[kind].values.map(({ field, unit }) => [field, stored(typed[field], unit)]));
    const missing = vitals[kind].values.filter(({ field, optional }) => !optional && typeof body[field] !== "number")
      .map(({ field }) => field);
    if (missing.length > 0) {
      return show(t("missing"), missing);
    }
    const unlikely = unlikelyFields(kind, body);
    const asked = JSON.stringify([kind, body]);
    if (unlikely.length > 0 && confirmed !== asked) {
      setConfirmed(asked);
      return show(`${t("isRight")} ${t("isRightHelp", { value: unlikely.map((field) => typed[field]).join(", ") })}`, unlikely);
    }
    if (unlikely.length === 0 && kind === "blood_pressure" && body.systolic <= body.diastolic) {
      return show(t("swapped"), ["systolic", "diastolic"]);
    }
    measuredAt.current ||= new Date().toISOString(); // a second attempt is the same reading
    setBusy(true);
    try {
      done(await post(`ingestion/${kind.replaceAll("_", "-")}/`, { ...body, patient_id: patient, measured_at: measuredAt.current }));
    } catch (error) {
      if (unlikely.length > 0 && asProblem(error).status === 400) {
        done({ held: true });
      } else {
        show(t("notSaved"), []);
      }
    } finally {
      setBusy(false);
    }
  };
  const changed = () => { measuredAt.current = ""; show("", []); };
  return html`<form onSubmit=${submit} onInput=${changed} novalidate>
    <div class="field"><label for="portal-kind">${t("kind")}</label>
      <select id="portal-kind" value=${kind} onChange=${(event) => { setKind(event.target.value); changed(); }}>
        ${Object.keys(vitals).map((one) => html`<option key=${one} value=${one}>${tCode(one)}</option>`)}</select></div>
    <div key=${kind}>${vitals[kind].values.map(({ field, unit }) => html`<div class="field" key=${field}>
      <label for=${`portal-${field}`}>${tCode(field)}, ${unitOf(unit)}</label>
      <input id=${`portal-${field}`} name=${field} type="number" step="any" inputmode="decimal"
        aria-invalid=${wrong.includes(field) ? "true" : null}
        aria-describedby=${wrong.includes(field) ? "portal-problem" : null} /></div>`)}</div>
    <p id="portal-problem" role="alert" class=${problem ? "notice problem" : ""}>${problem}</p>
    <div class="actions"><button type="button" class="quiet" onClick=${cancel}>${t("cancel")}</button>
      <button class="main" disabled=${isBusy}>${t(isBusy ? "saving" : "save")}</button></div>
  </form>`;
}
