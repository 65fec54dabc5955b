// Closed alerts, newest first.
import { get } from "../../api.js";
import { useQuery } from "../../query.js";
import { Field } from "../../ui/form.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { Pages } from "../../ui/table.js";
import { html } from "../../view.js";
import { AlertCard } from "./card.js";

const pageSize = 25;
const ends = /** @type {[string, string][]} */ ([["resolved", "Resolved by a person"], ["auto_resolved", "Resolved automatically"],
  ["", "All, including open"]]);

/** @param {{filters: Record<string, string>, page: number, turn: (page: number) => void}} props */
export function Answered({ filters, page, turn }) {
  const [{ how }, change] = useQuery({ how: "resolved" });
  const list = useLoad((signal) => get("alerts/", { ...filters, status: how === "all" ? "" : how, page, page_size: pageSize }, signal),
    [JSON.stringify(filters), how, page]);
  const put = (/** @type {any} */ alert) => list.change((data) => ({ ...data,
    results: data.results.map((one) => (one.id === alert.id ? { ...one, ...alert } : one)) }));
  return html`<${Field} label="Resolution" name="how" kind="select" value=${how === "all" ? "" : how} options=${ends}
    onChange=${(event) => change({ how: event.target.value || "all" })} />
    <${Loaded} from=${list} empty=${(data) => data.results.length === 0}
      nothing=${html`<${EmptyState} title="No alerts match" />`}>
      ${(data) => html`<ol class="alerts" aria-label="Alerts, newest first">
        ${data.results.map((alert) => html`<${AlertCard} key=${alert.id} alert=${alert} changed=${put} />`)}</ol>
        <${Pages} page=${page} count=${data.count} size=${pageSize} turn=${turn} />`}
    </${Loaded}>`;
}
