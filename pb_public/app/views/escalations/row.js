// A row of the escalation board: priority, reason, age, ladder, assignee and next step; expanded, its history and actions.
import { patch } from "../../api.js";
import { can } from "../../permissions.js";
import { colleague } from "../../colleagues.js";
import { useKeys } from "../../keys.js";
import { go } from "../../router.js";
import { me } from "../../session.js";
import { ActionButton } from "../../ui/form.js";
import { ageText, dateTime, humanize } from "../../ui/format.js";
import { StaffPicker } from "../../ui/staff_picker.js";
import { asProblem } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { classes, html, useEffect, useLayoutEffect, useRef, useState } from "../../view.js";
import { initials } from "../alerts/labels.js";
import { SendEscalation } from "../patient/send_report.js";
import { ActionDialog } from "./card.js";
import { alive, Ladder, Next, shapes, tones } from "./ladder.js";

/** @typedef {import("../alerts/escalation_steps.js").Escalation} Escalation */

const assignable = ["provider", "nurse", "clinical_manager", "admin"];

/**
 * @param {{one: Escalation, deadlines: any, first: boolean, here: boolean, open: boolean, unfold: () => void, put: (one: any) => void}}
 *   props here: the row has the focus and its shortcuts act
 */
export function EscalationRow({ one, deadlines, first, here, open, unfold, put }) {
  const [dialog, setDialog] = useState("");
  const [handoverRequests, setHandoverRequests] = useState(0); // how often it was requested while open
  const name = colleague(one.assigned_to, one.assigned_name);
  const change = async (/** @type {any} */ values) => {
    const answer = await patch(`escalations/${one.id}/`, values);
    put(answer);
    return answer;
  };
  const acts = useActs({ one, here, change, setDialog,
    open: () => { setHandoverRequests((times) => times + 1); open || unfold(); } });
  useEffect(() => { open || setHandoverRequests(0); }, [open]);
  return html`<li class=${classes("escalation", alive(one) ? tones[one.priority] : "ended", open && "opened")} data-key=${String(one.id)}
    tabindex=${first ? 0 : -1}
      aria-label=${`${humanize(one.priority)}: ${one.patient_name}, ${one.reason ?? ""}`}>
    <div class="line">
      <span class=${`urgency ${tones[one.priority]}`}><span
        aria-hidden="true">${shapes[one.priority]}</span> ${humanize(one.priority)}</span>
      <div class="whom"><button class="link name" onClick=${() => go("patient", { id: one.patient_id, tab: "escalations" })}><bdi>
        ${one.patient_name}</bdi></button><span class="why">${one.reason}</span></div>
      <span class="age">${ageText(one.created_at)}</span>
      <${Ladder} one=${one} deadlines=${deadlines} />
      <span class="with">${name ? html`<span class="face" aria-hidden="true">${initials(one.assigned_name ?? name)}</span><span><span>
        ${name}</span><small>${one.taken ? "in progress" : "not taken"}</small></span>`
        : html`<span class="unassigned">No one yet</span>`}</span>
      <span class="next"><${Next} one=${one} deadlines=${deadlines} /></span>
      <button class="quiet fold" aria-expanded=${open ? "true" : "false"} aria-label=${`About the escalation of ${one.patient_name}`}
        onClick=${unfold}><span aria-hidden="true">${open ? "▾" : "▸"}</span></button>
    </div>
    ${open && html`<${Details} one=${one} acts=${acts} giving=${handoverRequests} change=${change} />`}
    ${dialog && html`<${ActionDialog} kind=${dialog} escalation=${one} close=${() => setDialog("")} done=${put}
      send=${(values) => patch(`escalations/${one.id}/`, values)} />`}
  </li>`;
}

/**
 * The actions on an escalation, by button and by shortcut.
 * @param {{one: Escalation, here: boolean, change: (values: any) => Promise<any>, setDialog: (what: string) => void, open: () => void}}
 * hands
 */
function useActs({ one, here, change, setDialog, open }) {
  const canChange = alive(one) && can("changeEscalation");
  const canTake = canChange && assignable.includes(me.value?.role ?? "") && !(one.taken && one.assigned_to === me.value?.email);
  const take = () => change({ status: "in_progress", ...(one.assigned_to === me.value?.email ? {} : { assigned_to: me.value?.email }) });
  useKeys(canChange ? {
    ...(canTake ? { t: { label: "Take", act: () => take().then(() => toast("Assigned to you."), showError) } } : {}),
    w: { label: "Hand over", act: open }, v: { label: "Resolve", act: () => setDialog("resolve") },
      n: { label: "Write a note", act: () => setDialog("note") },
    p: { label: "Open the patient", act: () => go("patient", { id: one.patient_id, tab: "escalations" }) },
  } : {}, { active: here });
  return { may: canChange, takes: canTake, take, setDialog };
}

const showError = (/** @type {unknown} */ error) => toast(asProblem(error).message, "problem");

/** @param {{one: Escalation, acts: ReturnType<typeof useActs>, giving: number, change: (values: any) => Promise<any>}} props */
function Details({ one, acts, giving, change }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => { // immediately: the next keys are a name, not shortcuts
    if (giving > 0) {
      /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector(".give [role=combobox]"))?.focus();
    }
  }, [giving]);
  const give = async (/** @type {any} */ choice) => {
    if (!choice || choice.value === one.assigned_to) {
      return;
    }
    const before = one.assigned_to;
    try {
      await change({ assigned_to: choice.value });
      toast(html`Handed over to <strong>${choice.text}</strong>`, "done", { undo: () => change({ assigned_to: before }) });
    } catch (error) {
      showError(error);
    }
  };
  const about = one.patient_name;
  return html`<div class="opened-part" ref=${box}>
    <div class="story"><p class="reason">${one.reason}</p><ol>${one.history.map((step, i) => html`<li key=${i}><strong>
      ${dateTime(step.at)}</strong> ${stepWords(step)}</li>`)}</ol>
      ${one.resolution_notes && html`<p class="note">${one.resolution_notes}</p>`}
      <${SendEscalation} one=${one} about=${about} />
      ${acts.may && html`<div class="acts">
        ${acts.takes && html`<${ActionButton} kind="main" act=${acts.take} doneText="Assigned to you."
          aria-label=${`Take: ${about}`}>Take <kbd aria-hidden="true">T</kbd></${ActionButton}>`}
        <button onClick=${() => acts.setDialog("resolve")}
          aria-label=${`Resolve: ${about}`}>Resolve… <kbd aria-hidden="true">V</kbd></button>
        <button onClick=${() => acts.setDialog("note")} aria-label=${`Note: ${about}`}>Note… <kbd aria-hidden="true">N</kbd></button>
        <button onClick=${() => acts.setDialog("change")} aria-label=${`Priority: ${about}`}>Priority…</button>
        <button class="quiet" onClick=${() => acts.setDialog("cancel")} aria-label=${`Cancel: ${about}`}>Cancel…</button>
      </div>`}</div>
    ${acts.may && html`<div class="give" key=${one.assigned_to ?? ""}><${StaffPicker} label="Hand over to" name="give"
      without=${one.assigned_to ? [one.assigned_to] : []} chosen=${give} hint="Name or role, then Enter" /></div>`}
  </div>`;
}

const events = {
  opened: "Opened", assigned: "Reassigned.", in_progress: "Taken", priority: "Priority changed.", note: "Note:", alert_joined: "Worse:",
  text_joined: "From the patient:",
    overdue: "Overdue.", tier_1: "On-call paged.", tier_2: "Managers paged.",
  tier_3: "Everyone paged.", handed_over: "On-call paged now.", reminded: "Reminder: note overdue.",
    resolved: "Resolved", cancelled: "Canceled", time_logged: "Time logged.",
};

/** @param {{event: string, user: string, detail: string | null}} step */
const stepWords = ({ event, user, detail }) => `${events[event] ?? humanize(event)} ${["opened", "in_progress", "resolved", "cancelled",
  "note"].includes(event) ? `by ${user === "system" ? "Vigil" : user}. ` : ""}${detail ?? ""}`;
