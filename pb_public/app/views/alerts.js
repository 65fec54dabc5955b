// The board of alerts: newest first, live, acted on in place. What was just dealt with stays in sight until the list is
// fetched anew, so that nothing vanishes under the hand.
import { get } from "../api.js";
import { listen, onGap, stream } from "../live.js";
import { Field } from "../ui/form.js";
import { words } from "../ui/format.js";
import { Loaded, Nothing, useLoad } from "../ui/states.js";
import { Pages } from "../ui/table.js";
import { kinds } from "../ui/vitals.js";
import { daysAgo } from "../ui/when.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { AlertCard } from "./alerts/card.js";

const pageSize = 25;
const states = /** @type {[string, string][]} */ ([["active", "Open"], ["acknowledged", "Acknowledged"], ["resolved", "Resolved"], ["auto_resolved", "Resolved by themselves"], ["", "All"]]);
const levels = /** @type {[string, string][]} */ ([["", "All levels"], ["critical", "Critical"], ["warning", "Warning"], ["no_data", "No data"], ["normal", "Normal"]]);
const types = /** @type {[string, string][]} */ ([["", "All kinds"], ...Object.entries(kinds), ["pulse", "Pulse"],
  ...["implausible_reading", "device_clock", "missed_reading", "no_reading_24h", "battery_low", "battery_critical", "hub_offline"].map((type) => [type, words(type)])]);
const spans = /** @type {[string, string][]} */ ([["", "Any time"], ["1", "Since yesterday"], ["7", "Last 7 days"], ["30", "Last 30 days"]]);

export function Alerts() {
  const [filters, filter] = useState({ status: "active", level: "", type: "", mine: "", days: "" });
  const [page, turn] = useState(1);
  const { days, ...asked } = filters;
  const list = useLoad((signal) => get("alerts/", { ...asked, date_from: days && daysAgo(Number(days)), page, page_size: pageSize }, signal), [JSON.stringify(filters), page]);
  const { lit, waiting, put } = useLiveAlerts(list, filters, page);
  const narrow = (/** @type {Partial<typeof filters>} */ change) => { filter({ ...filters, ...change }); turn(1); };
  const choice = (/** @type {string} */ label, /** @type {keyof typeof filters} */ name, /** @type {[string, string][]} */ options) => html`
    <${Field} label=${label} name=${name} kind="select" value=${filters[name]} options=${options} onChange=${(event) => narrow({ [name]: event.target.value })} />`;
  return html`<div class="heading"><h1>Alerts</h1>${list.data && html`<span role="status">${list.data.count} found</span>`}</div>
    <div class="filters no-print" role="search" aria-label="Filter the alerts">
      ${choice("State", "status", states)} ${choice("Level", "level", levels)} ${choice("Kind", "type", types)} ${choice("Since", "days", spans)}
      ${choice("Patients", "mine", [["", "All I may see"], ["true", "My care teams"]])}
    </div>
    ${stream.value === "cut" && html`<p class="notice warning" role="alert">The live connection is cut: this list may be old.</p>`}
    ${waiting > 0 && html`<p class="notice no-print" role="status">${waiting} new since you turned the page. <button class="quiet" onClick=${() => { turn(1); list.reload(); }}>Show</button></p>`}
    <${Loaded} from=${list} empty=${(data) => data.results.length === 0} nothing=${html`<${Nothing} title="No such alert">Nothing matches these filters.</${Nothing}>`}>
      ${(data) => html`<ol class="alerts" aria-label="Alerts, newest first">${data.results.map((alert) => html`<${AlertCard} key=${alert.id} alert=${alert} changed=${put} lit=${lit === alert.id} />`)}</ol>
        <${Pages} page=${page} count=${data.count} size=${pageSize} turn=${turn} />`}
    </${Loaded}>`;
}

/** Puts alerts that change in place, and new ones on top. @param {any} list a useLoad @param {{status: string, level: string, type: string, mine: string}} filters @param {number} page */
function useLiveAlerts(list, filters, page) {
  const [lit, light] = useState(0);
  const [waiting, wait] = useState(0);
  const now = useRef({ filters, page });
  now.current = { filters, page };
  useEffect(() => wait(0), [list.data?.count, page]);
  const put = (/** @type {any} */ alert) => list.change((data) => ({ ...data, results: data.results.map((one) => (one.id === alert.id ? { ...one, ...alert } : one)) }));
  useEffect(() => {
    const stops = [onGap(list.reload), listen("alert", ({ data: alert }) => {
      const { filters: wanted, page: at } = now.current;
      const fits = wanted.mine === "" && ["status", "level", "type"].every((name) => wanted[name] === "" || wanted[name] === alert[name]);
      list.change((data) => {
        if (data.results.some((one) => one.id === alert.id)) {
          return { ...data, results: data.results.map((one) => (one.id === alert.id ? { ...one, ...alert } : one)) };
        }
        const newest = data.results[0];
        if (!fits || (newest && alert.id < newest.id)) {
          return data;
        }
        if (at > 1) {
          wait((n) => n + 1);
          return data;
        }
        light(alert.id);
        return { ...data, count: data.count + 1, results: [alert, ...data.results].slice(0, pageSize) };
      });
    })];
    return () => stops.forEach((stop) => stop());
  }, []);
  return { lit, waiting, put };
}
