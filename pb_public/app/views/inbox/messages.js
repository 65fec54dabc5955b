// The inbox: what waits for the user, one line for each patient or subject. A message leaves when it is read, or when its escalation is
// closed or taken by another user. "All messages" has the history.
import { get, post } from "../../api.js";
import { useQuery } from "../../query.js";
import { ActionButton, Field } from "../../ui/form.js";
import { ageText, countOf, fullTime, humanize } from "../../ui/format.js";
import { asProblem, Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { Pages } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { countUnread, unread } from "../../unread.js";
import { classes, html, useEffect } from "../../view.js";
import { targetOf } from "./open_message.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["Notification"]} Message */

const pageSize = 50;
const lists = /** @type {[string, string][]} */ ([["waiting", "For me"], ["", "All messages"], ["escalations", "Escalations"],
  ["alerts", "Alerts"], ["reminders", "Reminders"], ["daily_digest", "Daily digest"]]);
const signs = { critical: "▲", warning: "◆" };

export function Messages() {
  const [query, setQuery] = useQuery({ show: "waiting", page: 1 });
  const { show, page } = query;
  const filters = show === "waiting" ? { waiting: true } : { channel: show };
  const list = useLoad((signal) => get("notifications/", { ...filters, page, page_size: pageSize }, signal), [show, page]);
  const changed = () => { list.reload(); void countUnread(); };
  useEffect(() => { list.data && list.reload(); }, [unread.value]); // a message came or is closed
  return html`<div class="filters slim">
      <${Field} label="Show" name="show" kind="select" value=${show} options=${lists} onChange=${(event) =>
        setQuery({ show: event.target.value })} />
      ${list.data?.unread_count > 0 && html`<${ActionButton} act=${() => post("notifications/read-all/")} doneText="All marked as read."
        done=${changed}>Mark all ${list.data.unread_count} as read</${ActionButton}>`}
    </div>
    <${Loaded} from=${list} empty=${(data) => data.results.length === 0} nothing=${show === "waiting"
      ? html`<${EmptyState} title="Nothing waits for you">Escalations, reminders and digests for you appear here. Alerts are in
        Alerts.</${EmptyState}>` : html`<${EmptyState} title="No messages" />`}>
      ${(data) => html`<ul class="inbox" aria-label="Messages, newest first">${bySubject(data.results, show === "waiting").map((messages) =>
        html`<${Line} key=${messages[0].id} messages=${messages} changed=${changed} />`)}</ul>
        ${data.count > pageSize && html`<${Pages} page=${page} count=${data.count} size=${pageSize}
          turn=${(n) => setQuery({ page: n })} />`}`}
    </${Loaded}>`;
}

/** The messages of each patient together, in the order of their newest; the history has each alone.
 *  @param {Message[]} messages @param {boolean} together @returns {Message[][]} */
function bySubject(messages, together) {
  const found = new Map();
  for (const one of messages) {
    const key = together && one.patient_id ? one.patient_id : `message ${one.id}`;
    found.set(key, [...(found.get(key) ?? []), one]);
  }
  return [...found.values()];
}

/** @param {{messages: Message[], changed: () => void}} props of one patient, the newest first */
function Line({ messages, changed }) {
  const [message] = messages;
  const unreadOnes = messages.filter((one) => !one.read);
  const open = targetOf(message);
  const read = () => Promise.all(unreadOnes.map((one) => post(`notifications/${one.id}/read/`))).then(changed);
  const press = () => {
    read().catch((error) => toast(asProblem(error).message, "problem"));
    open?.();
  };
  const about = `${message.title}${messages.length > 1 ? ` and ${countOf(messages.length - 1, "other message")}` : ""}`;
  return html`<li class=${classes(unreadOnes.length > 0 && "unread", message.severity)}>
    <span class="sign" aria-hidden="true">${signs[message.severity] ?? "●"}</span>
    <button class="link title" onClick=${press}>${unreadOnes.length > 0 && html`<span class="unseen">Unread: </span>`}${message.title}
      ${messages.length > 1 && html` <span class="times">×${messages.length}</span>`}</button>
    <span class="text" title=${message.body}>${message.body}</span>
    ${message.patient_phone ? html`<a href=${`tel:${message.patient_phone.replace(/[^\d+]/g, "")}`}>${message.patient_phone}</a>`
      : html`<span></span>`}
    <span class="soft">${humanize(message.channel)}</span>
    <span class="soft" title=${fullTime(message.created_at)}>${ageText(message.created_at)}</span>
    ${unreadOnes.length > 0 ? html`<${ActionButton} kind="quiet" act=${read} aria-label=${`Done: ${about}`}>Done</${ActionButton}>`
      : html`<span></span>`}
  </li>`;
}
