// The board of escalations: what waits, what somebody works on, what is over.
import { get } from "../api.js";
import { listen, onGap, stream } from "../live.js";
import { go } from "../router.js";
import { me } from "../session.js";
import { Field } from "../ui/form.js";
import { Loaded, Nothing, useLoad } from "../ui/states.js";
import { Pages } from "../ui/table.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { EscalationCard } from "./escalations/card.js";

const pageSize = 25;
const states = /** @type {[string, string][]} */ ([["open", "Open"], ["in_progress", "In progress"], ["resolved", "Resolved"], ["cancelled", "Cancelled"], ["", "All"]]);
const priorities = /** @type {[string, string][]} */ ([["", "All priorities"], ["stat", "Stat"], ["urgent", "Urgent"], ["routine", "Routine"]]);

export function Escalations() {
  const [filters, filter] = useState({ status: "open", priority: "", assigned_to: "" });
  const [page, turn] = useState(1);
  const list = useLoad((signal) => get("escalations/", { ...filters, page, page_size: pageSize }, signal), [JSON.stringify(filters), page]);
  const narrow = (/** @type {Partial<typeof filters>} */ change) => { filter({ ...filters, ...change }); turn(1); };
  const put = useLiveEscalations(list, filters, page);
  return html`<div class="heading"><h1>Escalations</h1>
      <div class="choices" role="group" aria-label="State">${states.map(([code, name]) => html`<button key=${code} aria-pressed=${filters.status === code ? "true" : "false"} onClick=${() => narrow({ status: code })}>${name}</button>`)}</div>
      <button onClick=${() => go("on-call")}>On call</button>
    </div>
    <div class="filters no-print" role="search" aria-label="Filter the escalations">
      <${Field} label="Priority" name="priority" kind="select" value=${filters.priority} options=${priorities} onChange=${(event) => narrow({ priority: event.target.value })} />
      <${Field} label="Assigned to" name="assigned_to" kind="select" value=${filters.assigned_to} options=${[["", "Anybody"], [me.value?.email ?? "", "Me"]]}
        onChange=${(event) => narrow({ assigned_to: event.target.value })} />
    </div>
    ${stream.value === "cut" && html`<p class="notice warning" role="alert">The live connection is cut: this list may be old.</p>`}
    <${Loaded} from=${list} empty=${(data) => data.results.length === 0} nothing=${html`<${Nothing} title="Nothing here">No escalation matches these filters.</${Nothing}>`}>
      ${(data) => html`<ol class="alerts" aria-label="Escalations, newest first">${data.results.map((one) => html`<${EscalationCard} key=${one.id} escalation=${one} changed=${put} />`)}</ol>
        <${Pages} page=${page} count=${data.count} size=${pageSize} turn=${turn} />`}
    </${Loaded}>`;
}

/** Puts escalations that change in place, and new ones on top. @param {any} list a useLoad @param {any} filters @param {number} page */
function useLiveEscalations(list, filters, page) {
  const now = useRef({ filters, page });
  now.current = { filters, page };
  const put = (/** @type {any} */ told) => list.change((data) => {
    const { filters: wanted, page: at } = now.current;
    if (data.results.some((one) => one.id === told.id)) {
      return { ...data, results: data.results.map((one) => (one.id === told.id ? told : one)) };
    }
    const fits = at === 1 && Object.entries(wanted).every(([name, value]) => value === "" || told[name] === value);
    return fits && told.id > (data.results[0]?.id ?? 0) ? { ...data, count: data.count + 1, results: [told, ...data.results].slice(0, pageSize) } : data;
  });
  useEffect(() => {
    const stops = [onGap(list.reload), listen("escalation", ({ data }) => put(data))];
    return () => stops.forEach((stop) => stop());
  }, []);
  return put;
}
