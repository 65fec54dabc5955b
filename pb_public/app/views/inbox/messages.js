// The list of messages, newest first. Opening one marks it as read and opens its subject.
import { get, post } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Field } from "../../ui/form.js";
import { ago, fullTime, humanize } from "../../ui/format.js";
import { asProblem, Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { Pages } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { unread } from "../../unread.js";
import { html, useEffect, useState } from "../../view.js";
import { targetOf } from "./open_message.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["Notification"]} Message */

const pageSize = 20;
const channels = /** @type {[string, string][]} */ ([["", "All channels"], ["escalations", "Escalations"], ["alerts", "Alerts"],
  ["reminders", "Reminders"], ["daily_digest", "Daily digest"]]);

export function Messages() {
  const [filters, setFilters] = useState({ channel: "", unread: "" });
  const [page, setPage] = useState(1);
  const list = useLoad((signal) => get("notifications/", { ...filters, page, page_size: pageSize }, signal), [JSON.stringify(filters),
    page]);
  const narrow = (/** @type {Partial<typeof filters>} */ change) => { setFilters({ ...filters, ...change }); setPage(1); };
  useEffect(() => {
    if (list.data && unread.value > list.data.unread_count) {
      list.reload(); // a new message arrived
    }
  }, [unread.value]);
  useEffect(() => {
    if (list.data) {
      unread.value = list.data.unread_count;
    }
  }, [list.data?.unread_count]);
  const put = (/** @type {Message} */ message) => list.change((data) => ({
    ...data, unread_count: Math.max(0, data.unread_count - 1), results: data.results.map((/** @type {Message} */ one) =>
      (one.id === message.id ? message : one)),
  }));
  const allRead = () =>
    list.change((data) =>
    ({ ...data, unread_count: 0, results: data.results.map((/** @type {Message} */ one) => ({ ...one, read: true })) }));
  return html`<div class="filters" role="search" aria-label="Filter the messages">
      <${Field} label="Channel" name="channel" kind="select" value=${filters.channel} options=${channels} onChange=${(event) =>
        narrow({ channel: event.target.value })} />
      <${Field} label="Show" name="unread" kind="select" value=${filters.unread} options=${[["", "Read and unread"], ["true", "Unread"]]}
        onChange=${(event) => narrow({ unread: event.target.value })} />
      ${list.data?.unread_count > 0 && html`<${ActionButton} act=${() => post("notifications/read-all/")} doneText="All marked as read."
        done=${allRead}>
        Mark all ${list.data.unread_count} as read</${ActionButton}>`}
    </div>
    <${Loaded} from=${list} empty=${(data) => data.results.length === 0} nothing=${html`<${EmptyState} title="No messages">
      Messages about alerts, escalations and your tasks appear here.</${EmptyState}>`}>
      ${(data) => html`<ul class="inbox" aria-label="Messages, newest first">${data.results.map((/** @type {Message} */ message) =>
        html`<${Line} key=${message.id} message=${message} put=${put} />`)}</ul>
        <${Pages} page=${page} count=${data.count} size=${pageSize} turn=${setPage} />`}
    </${Loaded}>`;
}

/** @param {{message: Message, put: (message: Message) => void}} props */
function Line({ message, put }) {
  const target = targetOf(message);
  const read = async () => {
    if (!message.read) {
      put(await post(`notifications/${message.id}/read/`));
    }
  };
  const open = () => {
    read().catch((error) => toast(asProblem(error).message, "problem"));
    target?.();
  };
  return html`<li class=${message.read ? "" : "unread"}>
    <span class="mark" aria-hidden="true">${message.read ? "○" : "●"}</span>
    <div><button class="link title" onClick=${open}>${!message.read && html`<span class="unseen">Unread: </span>`}${message.title}</button>
      <p>${message.body}</p>
      ${message.patient_phone && html`<p class="note">Phone: <a href=${`tel:${message.patient_phone.replace(/[^\d+]/g, "")}`}>
        ${message.patient_phone}</a></p>`}</div>
    <div class="when"><small class="soft" title=${fullTime(message.created_at)}>${ago(message.created_at)}</small>
      <${Badge} of=${message.severity} text=${`${humanize(message.severity)}, ${humanize(message.channel).toLowerCase()}`} />
      ${!message.read && target && html`<${ActionButton} kind="quiet" act=${read} aria-label=${`Mark as read: ${message.title}`}>
        Mark as read</${ActionButton}>`}</div>
  </li>`;
}
