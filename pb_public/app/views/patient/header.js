// Who the patient is, how urgent, and what concerns the whole record: change, archive, review, escalate, print.
import { post, remove } from "../../api.js";
import { can } from "../../can.js";
import { go } from "../../router.js";
import { Badge, Handling, Risk, share } from "../../ui/badge.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { ago, calendarDate, words } from "../../ui/format.js";
import { toast } from "../../ui/toast.js";
import { classes, html, useState } from "../../view.js";
import { EscalateDialog } from "../escalate.js";
import { PatientDialog } from "../patients.js";

/** Full years since a calendar date. @param {string | null} born @param {Date} [now] */
export function age(born, now = new Date()) {
  if (!born) {
    return null;
  }
  const [year, month, date] = born.split("-").map(Number);
  const had = now.getMonth() + 1 > month || (now.getMonth() + 1 === month && now.getDate() >= date);
  return now.getFullYear() - year - (had ? 0 : 1);
}

/** An address that breaks before its domain. @param {string | null | undefined} email */
const breakable = (email) => email && html`${email.split("@")[0]}@<wbr />${email.split("@")[1]}`;
const oneLine = (/** @type {any} */ a) => a && [a.line1, a.line2, [a.city, a.state, a.zip].filter(Boolean).join(" ")].filter(Boolean).join(", ");

/** standing is the row of the triage list, if there is one; brief keeps to what one needs beside other work, on the screen.
 *  @param {{patient: any, standing: any, changed: () => void, emergency: boolean, brief: boolean}} props */
export function Header({ patient: p, standing, changed, emergency, brief }) {
  const [asking, ask] = useState("");
  const close = () => ask("");
  const name = `${p.first_name ?? ""} ${p.last_name ?? ""}`.trim() || "Name not shown";
  const hidden = (/** @type {string} */ field, /** @type {any} */ value) => (p.redacted_fields.includes(field) ? "not for your role" : value || "–");
  return html`<header class=${classes("card sheet-head", brief && "brief")}>
    <div class="heading">
      ${standing && html`<${Risk} score=${standing.risk_score} level=${standing.risk_level} />`}
      <h1>${name}</h1>
      ${standing && html`<${Handling} handling=${standing.handling} />`}
      ${p.status === "archived" && html`<${Badge} of="archived" />`}
      ${p.needs_thresholds && html`<${Badge} of="warning" text="Needs thresholds" />`}
      ${emergency && html`<span class="badge critical"><span aria-hidden="true">▲</span> Emergency access, on record</span>`}
      <div class="acts no-print">
        ${!emergency && standing && can("review") && html`<${ActionButton} act=${() => post(`triage/patients/${p.id}/review/`)} said="Review noted." done=${changed}>Note as reviewed</${ActionButton}>`}
        ${p.active && can("escalate") && html`<button onClick=${() => ask("escalate")}>Escalate</button>`}
        ${!emergency && p.active && can("changePatient") && html`<button onClick=${() => ask("change")}>Change</button>`}
        ${!emergency && can("archivePatient") && (p.active ? html`<button onClick=${() => ask("archive")}>Archive</button>`
          : html`<${ActionButton} act=${() => post(`patients/${p.id}/unarchive/`)} said="Active again." done=${changed}>Unarchive</${ActionButton}>`)}
        ${!emergency && can("deletePatient") && html`<button onClick=${() => ask("remove")}>Delete</button>`}
        <button onClick=${() => print()}>Print</button>
      </div>
    </div>
    <dl class="facts">
      ${[["MRN", p.mrn], ["Born", hidden("date_of_birth", p.date_of_birth && `${calendarDate(p.date_of_birth)} (${age(p.date_of_birth)})`)], ["Gender", words(p.gender)],
        ["Phone", hidden("phone", p.phone && html`<a href=${`tel:${p.phone}`}>${p.phone}</a>`)], ["Email", hidden("email", breakable(p.email))], ["Address", hidden("address", oneLine(p.address))],
        ["Diagnoses", p.icd10_codes?.join(", ") || "none recorded"], ...(standing ? [["Last reading", ago(standing.last_reading_at)],
          ["Last review", standing.last_reviewed_at ? html`${ago(standing.last_reviewed_at)}${standing.last_reviewed_by && html` by ${breakable(standing.last_reviewed_by)}`}` : "never"]] : []),
        ...(p.archive_reason && !p.active ? [["Archived because", p.archive_reason]] : []),
      ].map(([term, value]) => html`<div key=${term} class=${classes(!kept.includes(term) && "extra")}><dt>${term}</dt><dd>${value}</dd></div>`)}
    </dl>
    ${standing?.risk_factors.length > 0 && html`<details class="factors" open=${!brief}><summary>Why ${standing.risk_score}?</summary>
      <ul>${standing.risk_factors.map((factor) => html`<li key=${factor.factor}><strong>${share(factor, standing.handling)}</strong> ${factorNames[factor.factor]}: ${factor.detail}</li>`)}</ul></details>`}
    ${asking === "escalate" && html`<${EscalateDialog} patient=${{ id: p.id, name }} close=${close} done=${changed} />`}
    ${asking === "change" && html`<${PatientDialog} patient=${p} close=${close} done=${changed} />`}
    ${asking === "archive" && html`<${ArchiveDialog} id=${p.id} name=${name} close=${close} done=${changed} />`}
    ${asking === "remove" && html`<${RemoveDialog} id=${p.id} name=${name} close=${close} />`}
  </header>`;
}

/** What stays in a brief header: whom it is about, how to reach them, and whether they are heard from. */
const kept = ["MRN", "Born", "Phone", "Diagnoses", "Last reading", "Archived because"];

const factorNames = { vitals: "Vitals", alerts: "Alerts", review: "Time since review", floor: "Kept up by what is open", danger: "Danger", thresholds: "Thresholds" };

/** @param {{id: string, name: string, close: () => void, done: () => void}} props */
const ArchiveDialog = ({ id, name, close, done }) => html`<${Dialog} title=${`Archive ${name}`} close=${close}>
  <p>No more readings are taken in and no alerts raised. It can be undone.</p>
  <${Form} submit="Archive" danger cancel=${close} send=${(values) => post(`patients/${id}/archive/`, { reason: values.reason ?? "" })}
    done=${() => { toast("Archived."); close(); done(); }}>${(errors) => html`<${Field} label="Reason" name="reason" kind="textarea" errors=${errors} />`}</${Form}>
</${Dialog}>`;

/** @param {{id: string, name: string, close: () => void}} props */
const RemoveDialog = ({ id, name, close }) => html`<${Dialog} title=${`Delete ${name}`} close=${close}>
  <p>The record disappears from every list. An administrator can restore it.</p>
  <${Form} submit="Delete" danger cancel=${close} send=${() => remove(`patients/${id}/`)} done=${() => { toast("Deleted."); go("patients"); }}>${() => null}</${Form}>
</${Dialog}>`;
