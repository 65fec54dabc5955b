// Messages with a patient: texts, calls and the portal in one thread, and a form for the next one.
import { get, post } from "../../api.js";
import { can } from "../../permissions.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Field, Form } from "../../ui/form.js";
import { dateTime, day, humanize } from "../../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { classes, html, useEffect, useState } from "../../view.js";

const templates = /** @type {[string, string][]} */ ([["free_text", "My own words"], ["question", "We have a question, please call us"],
  ["take_again", "Rest and take the reading again"], ["missed_reading", "No reading today"], ["battery_low", "Charge the device"],
  ["device_shipped", "Device shipped"]]);
const channelNames = { sms: "Text", voice: "Phone call", portal: "Portal" };
const reasons = {
  archived: "patient archived", no_consent: "no consent", stopped: "the phone sent STOP", channel_off: "channel not wanted",
  no_phone: "no number to reach", hold: "on hold", quiet_hours: "outside the hours", daily_limit: "one a day is the limit",
  weekly_limit: "three a week is the limit", resolved: "no longer needed", outage: "the provider could not be reached in time",
  off: "messaging is off", unreadable: "cannot be opened", refused: "refused by the provider", undelivered: "not delivered",
  no_answer: "the provider did not confirm it; it is not sent again",
};
const refreshEvery = 20_000; // a text arrives without an event in the live stream

/** @param {{id: string, patient: any, active: boolean, turn: number}} props */
export function PatientMessages({ id, patient, active, turn }) {
  const list = useLoad((signal) => get(`patients/${id}/messages/`, { page_size: 50 }, signal), [id, turn]);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || list.reload(), refreshEvery);
    return () => clearInterval(timer);
  }, [id]);
  const newestUnread = list.data?.results.find((/** @type {any} */ m) => m.direction === "in" && !m.read_at);
  return html`<section aria-labelledby="messages">
    <div class="heading"><h2 id="messages">Messages</h2>${newestUnread && can("markMessages") && html`
      <${ActionButton} act=${() => post(`patients/${id}/messages/${newestUnread.id}/read/`)} doneText="Marked as read."
        done=${list.reload}>Mark all as read</${ActionButton}>`}</div>
    <div class="thread-page">
      <div class="card"><${Loaded} from=${list} empty=${(data) => data.results.length === 0}
        nothing=${html`<${EmptyState} title="No messages yet" />`}>${(data) => html`
        <ol class="thread" aria-label="Messages, newest first">${data.results.map((m) =>
          html`<${Message} key=${m.id} message=${m} />`)}</ol>`}</${Loaded}></div>
      ${can("sendMessages") && active && html`<${Compose} id=${id} patient=${patient} sent=${list.reload} />`}
    </div>
  </section>`;
}

/** Who sent a message. @param {any} m */
const senderOf = (m) => (m.direction === "in" ? "Patient" : m.author === "system" ? "Vigil" : m.author);

/** @param {{message: any}} props */
function Message({ message: m }) {
  const isUnread = m.direction === "in" && !m.read_at;
  const waits = m.state === "queued" && new Date(m.due_at).getTime() > Date.now();
  const state = waits ? `waits until ${dateTime(m.due_at)}` : m.direction === "in" ? "" : m.reason
    ? `${humanize(m.state).toLowerCase()}: ${reasons[m.reason] ?? humanize(m.reason)}` : humanize(m.state).toLowerCase();
  return html`<li class=${classes(m.direction === "in" ? "from" : "to", isUnread && "unread")}>
    <p class="words">${m.text || html`<span class="soft">(empty)</span>`}</p>
    <small>${[senderOf(m), channelNames[m.channel], dateTime(m.created_at), state].filter(Boolean).join(" · ")}
      ${m.read_at && m.read_by !== "system" && ` · read by ${m.read_by}`}</small>
    ${isUnread && html` <${Badge} of="unread" text="Unread" />`}</li>`;
}

/** Why no text can be sent, or "". @param {any} messaging */
const obstacle = (messaging) => (messaging.stopped_at
  ? `The phone sent STOP on ${day(messaging.stopped_at)}. Only START from that phone ends it. The portal still works.`
  : messaging.consent ? ""
    : "Texts and calls need a consent of the type “Messaging”: record it under Team & consents. The portal needs none.");

/** @param {{id: string, patient: any, sent: () => void}} props */
function Compose({ id, patient, sent }) {
  const [template, setTemplate] = useState("free_text");
  const why = obstacle(patient.messaging);
  const [channel, setChannel] = useState(why ? "portal" : patient.messaging.sms || !patient.messaging.voice ? "sms" : "voice");
  const isPortal = channel === "portal";
  const send = (/** @type {any} */ values) => post(`patients/${id}/messages/`, {
    template: isPortal ? "free_text" : template, channel, ...(isPortal || template === "free_text" ? { text: values.text } : {}) });
  return html`<div class="card"><h3>New message</h3>
    ${why && html`<p class="notice warning">${why}</p>`}
    <${Form} key=${channel} submit="Send" draft=${`message ${id}`} send=${send}
      done=${(m) => { toast(m.state === "queued" && new Date(m.due_at).getTime() > Date.now() + 60_000
        ? `It will be sent at ${dateTime(m.due_at)}.` : "Sent."); sent(); }}>${(errors) => html`
      <${Field} label="Send by" name="channel" kind="select" value=${channel} errors=${errors}
        options=${[["sms", "Text"], ["voice", "Phone call"], ["portal", "Portal"]]}
        onChange=${(event) => setChannel(event.target.value)} />
      ${!isPortal && html`<${Field} label="Message" name="template" kind="select" value=${template} options=${templates}
        errors=${errors}
        onChange=${(event) => setTemplate(event.target.value)} />`}
      ${(isPortal || template === "free_text") && html`<${Field} label="Text" name="text" kind="textarea" required
        maxlength=${isPortal ? 4000 : 160} errors=${errors} hint=${isPortal ? "Only the patient reads it, after signing in."
        : "Others may read it: no values, diagnoses, medicines or names. The practice's name and how to stop are added."} />`}`}
    </${Form}></div>`;
}
