// The chart's header: patient, risk, and actions on the whole record.
import { post, remove } from "../../api.js";
import { chartLink } from "../../chart_link.js";
import { can } from "../../permissions.js";
import { colleagueInSentence } from "../../colleagues.js";
import { go } from "../../router.js";
import { ageAndSex } from "../../ui/age.js";
import { Badge, Handling, Risk, scoreShare } from "../../ui/badge.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { ago, calendarDate, dateTime, humanize } from "../../ui/format.js";
import { asProblem } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { localInput } from "../../ui/time.js";
import { html, useEffect, useRef, useState } from "../../view.js";
import { PatientDialog } from "../patients.js";
import { ArchiveDialog } from "./archive.js";
import { canSendReports, SendReportDialog } from "./send_report.js";
import { EndHoldDialog, HoldBadge, HoldDialog } from "./hold.js";

/** An email address with a line break opportunity before its domain. @param {string | null | undefined} email */
const breakableEmail = (email) => email && html`${email.split("@")[0]}@<wbr />${email.split("@")[1]}`;
const oneLine = (/** @type {any} */ a) => a
  && [a.line1, a.line2, [a.city, a.state, a.zip].filter(Boolean).join(" ")].filter(Boolean).join(", ");

/** standing is the row of the triage list, if there is one.
 *  @param {{patient: any, standing: any, changed: () => void, emergency: boolean, zone: string | undefined, acts:
  *  import("./actions.js").Acts}} props */
export function Header({ patient: p, standing, changed, emergency, zone, acts }) {
  const [dialog, setDialog] = useState("");
  const close = () => setDialog("");
  const name = `${p.first_name ?? ""} ${p.last_name ?? ""}`.trim() || "Name hidden";
  const born = p.redacted_fields.includes("date_of_birth") ? "date of birth hidden for your role" : p.date_of_birth
    ? `born ${calendarDate(p.date_of_birth)}` : "date of birth not on record";
  const key = (/** @type {string} */ letter) => html` <kbd aria-hidden="true">${letter}</kbd>`;
  return html`<header class="sheet-head">
    <div class="who">
      ${standing && html`<${Risk} score=${standing.risk_score} level=${standing.risk_level} />`}
      <h1><bdi>${name}</bdi></h1>
      <span class="soft">${[ageAndSex(p, zone), born, /^mrn/i.test(p.mrn) ? p.mrn : `MRN ${p.mrn}`].filter(Boolean).join(" · ")}</span>
      ${standing && html`<${Handling} handling=${standing.handling} />`}
      ${p.status === "archived" && html`<${Badge} of="archived" text=${p.deceased_at
        ? `Died ${calendarDate(p.deceased_at)}` : undefined} />`}
      <${HoldBadge} hold=${p.hold} zone=${zone} />
      ${p.needs_thresholds && html`<${Badge} of="warning" text="Needs thresholds" />`}
      ${p.provisional?.length > 0 && html`<${Badge} of="warning" text="Provisional limits" />`}
      ${p.needs_target_weight && html`<${Badge} of="warning" text="Needs a dry weight" />`}
      ${emergency && html`<span class="badge critical"><span aria-hidden="true">▲</span> Emergency access, audited</span>`}
      ${(p.icd10_codes ?? []).map((/** @type {string} */ code) => html`<span key=${code} class="badge">${code}</span>`)}
    </div>
    <div class="acts no-print">
      ${acts.escalate && html`<button aria-keyshortcuts="E" onClick=${acts.escalate}>Escalate${key("E")}</button>`}
      ${acts.note && html`<button aria-keyshortcuts="N" onClick=${acts.note}>${acts.running ? "Stop and note"
        : "Note"}${key("N")}</button>`}
      ${acts.report && html`<button aria-keyshortcuts="P" onClick=${acts.report}>Visit report${key("P")}</button>`}
      ${acts.review && html`<button aria-keyshortcuts="R" onClick=${acts.review}>Reviewed${key("R")}</button>`}
      <${More}>
        ${!emergency && p.active && can("changePatient") && html`<button onClick=${() => setDialog("change")}>Edit</button>`}
        ${!emergency && p.active && can("holdPatient") && html`<button onClick=${() => setDialog("hold")}>${p.hold ? "Change hold"
          : "Put on hold"}</button>`}
        ${!emergency && p.hold && can("holdPatient") && html`<button onClick=${() => setDialog("end hold")}>End hold</button>`}
        ${!emergency && can("archivePatient") && (p.active ? html`<button onClick=${() => setDialog("archive")}>Archive</button>`
          : html`<${ActionButton} act=${() => post(`patients/${p.id}/unarchive/`)} doneText="Unarchived."
          done=${changed}>Unarchive</${ActionButton}>`)}
        ${!emergency && can("deletePatient") && html`<button onClick=${() => setDialog("remove")}>Delete</button>`}
        ${!emergency && p.external_id && canSendReports() && html`<button onClick=${() => setDialog("send")}>Send report to EMR</button>`}
        <button onClick=${() => void chartLink(p.id).then((link) => window.open(link, "_blank", "noopener"),
          failed)}>Open in new tab</button>
        <button onClick=${() => void chartLink(p.id).then((link) => navigator.clipboard.writeText(link)).then(() =>
          toast("Link copied. It opens this chart once, within 10 minutes."), failed)}>Copy link for a colleague</button>
        <button onClick=${() => print()}>Print this page</button>
      </${More}>
    </div>
    ${dialog === "change" && html`<${PatientDialog} patient=${p} close=${close} done=${changed} />`}
    ${dialog === "hold" && html`<${HoldDialog} patient=${p} zone=${zone} close=${close} done=${changed} />`}
    ${dialog === "end hold" && html`<${EndHoldDialog} id=${p.id} close=${close} done=${changed} />`}
    ${dialog === "archive" && html`<${ArchiveDialog} id=${p.id} name=${name} close=${close} done=${changed} />`}
    ${dialog === "send" && html`<${SendReportDialog} id=${p.id} name=${name} close=${close} />`}
    ${dialog === "remove" && html`<${RemoveDialog} id=${p.id} name=${name} close=${close} />`}
  </header>`;
}

const failed = (/** @type {unknown} */ error) => toast(asProblem(error).message, "problem");

/** A menu for less frequent actions. @param {{children?: any}} props */
function More({ children }) {
  const box = useRef(/** @type {HTMLDetailsElement | null} */ (null));
  useEffect(() => {
    const shut = (/** @type {Event} */ event) => {
      const node = box.current;
      if (node?.open && (event instanceof KeyboardEvent ? event.key === "Escape"
        : !(event.target instanceof Node && node.contains(event.target))
        || (event.target instanceof Element && event.target.closest("button")))) {
        node.open = false;
        if (event instanceof KeyboardEvent) {
          node.querySelector("summary")?.focus();
        }
      }
    };
    addEventListener("click", shut);
    addEventListener("keydown", shut);
    return () => { removeEventListener("click", shut); removeEventListener("keydown", shut); };
  }, []);
  const left = (/** @type {FocusEvent} */ event) => { // closes the menu when the focus leaves it
    if (box.current && event.relatedTarget instanceof Node && !box.current.contains(event.relatedTarget)) {
      box.current.open = false;
    }
  };
  return html`<details class="more-acts" ref=${box} onFocusOut=${left}><summary class="button" aria-label="More actions"
    title="More">⋯</summary><div>${children}</div></details>`;
}

/** Contact data, address, diagnoses and risk factors, collapsed.
 *  @param {{patient: any, standing: any, zone: string | undefined}} props */
export function Facts({ patient: p, standing, zone }) {
  const hidden = (/** @type {string} */ field, /** @type {any} */ value) => (p.redacted_fields.includes(field) ? "hidden for your role"
    : value || "–");
  return html`<details class="record"><summary>${standing ? `Details · Why ${standing.risk_score}?` : "Details"}${p.archive_reason
    && !p.active ? `: archived, ${p.archive_reason}` : ""}</summary>
    <dl class="facts">${[
      ["Phone", hidden("phone", p.phone && html`<a href=${`tel:${p.phone}`}>${p.phone}</a>`)],
        ["Email", hidden("email", breakableEmail(p.email))], ["Address", hidden("address", oneLine(p.address))],
      ["Diagnoses", p.icd10_codes?.join(", ") || "none on record"],
        ...(standing ? [["Last reading",
          html`<span title=${dateTime(standing.last_reading_at, zone)}>${ago(standing.last_reading_at)}</span>`],
        ["Last review", standing.last_reviewed_at
          ? html`${ago(standing.last_reviewed_at)}${
            standing.last_reviewed_by && html` by ${colleagueInSentence(standing.last_reviewed_by)}`}`
          : "never"]] : []),
    ].map(([term, value]) => html`<div key=${term}><dt>${term}</dt><dd>${value}</dd></div>`)}</dl>
    ${standing?.risk_factors.length > 0 && html`<ul class="factors">${standing.risk_factors.map((factor) => html`<li key=${factor.factor}>
      <strong>${scoreShare(factor, standing.risk_factors)}</strong> ${factorNames[factor.factor]}: ${factor.detail}</li>`)}</ul>`}
  </details>`;
}

const factorNames = { vitals: "Vitals", alerts: "Alerts", review: "Time since review", floor: "Minimum for open work",
  danger: "Danger", thresholds: "Thresholds" };

/** @param {{id: string, name: string, close: () => void}} props */
const RemoveDialog = ({ id, name, close }) => html`<${Dialog} title=${`Delete ${name}`} close=${close}>
  <p>The record is removed from all lists. An administrator can restore it.</p>
  <${Form} submit="Delete" danger cancel=${close} send=${() => remove(`patients/${id}/`)}
    done=${() => { toast("Deleted."); go("patients"); }}>${() => null}</${Form}>
</${Dialog}>`;
