// The patient's open work by cause: unacknowledged and acknowledged alerts, escalations, and snoozes.
import { colleagueInSentence, colleague } from "../../../colleagues.js";
import { me } from "../../../session.js";
import { updateQuery } from "../../../router.js";
import { ago, clock, dateTime, humanize } from "../../../ui/format.js";
import { html } from "../../../view.js";
import { causeName, causes } from "../causes.js";

const shapes = { critical: "▲", warning: "◆" };

/** @typedef {{key: string, sign: string, tone: string, head: any, more: any, tab: string}} Item */

/** @param {{open: any, readings: any[], zone: string | undefined}} props */
export function OpenWork({ open, readings, zone }) {
  if (!open) {
    return html`<section class="card work" aria-label="Open work"><p class="state waiting" role="status">Loading</p></section>`;
  }
  const items = itemsOf(open, readings, zone);
  return html`<section class="card work" aria-labelledby="work"><div class="heading"><h2 id="work">Open work</h2><small
    class="soft">${items.length}</small></div>
    ${items.length === 0 ? html`<p class="soft">No open work.</p>` : html`<ul>${items.map((item) => html`<li key=${item.key}>
      <span class=${`sign ${item.tone}`} aria-hidden="true">${item.sign}</span>
      <div><button class="link" onClick=${() =>
        updateQuery({ tab: item.tab })}>${item.head}</button><small>${item.more}</small></div></li>`)}</ul>`}
    ${open.count > open.active.length && html`<p class="soft">${open.count - open.active.length} more open alerts.</p>`}
  </section>`;
}

/** @param {any} open @param {any[]} readings @param {string | undefined} zone @returns {Item[]} */
function itemsOf(open, readings, zone) {
  const unanswered = causes(open.active, readings).map((cause) => ({
    key: `a ${cause.type} ${cause.level}`, sign: shapes[cause.level] ?? "■", tone: cause.level, tab: "alerts",
      head: html`<strong>${causeName(cause.type)}</strong>${cause.value && ` ${cause.value}`}${times(cause)}`,
    more: `${cause.alerts.length > 1 ? `${dateTime(cause.first, zone)} to ${clock(cause.last, zone)}` : ago(cause.last)}, not acknowledged${
      cause.alerts[0].held_until ? `; awaiting a second reading until ${clock(cause.alerts[0].held_until, zone)}` : ""}`,
  }));
  const progress = causes(open.acknowledged, readings).map((cause) => {
    const [newest] = cause.alerts;
    return { key: `p ${cause.type} ${cause.level}`, sign: "◐", tone: "", tab: "alerts",
      head: html`<strong>${causeName(cause.type)}</strong>${cause.value && ` ${cause.value}`}${times(cause)}`,
      more: `in progress, ${newest.acknowledged_by === me.value?.email ? "yours"
        : colleague(newest.acknowledged_by)}, ${dateTime(newest.acknowledged_at, zone)}${newest.outcome
          ? `: ${humanize(newest.outcome).toLowerCase()}`
        : ""}${
        newest.follow_up_at ? `; follow up ${dateTime(newest.follow_up_at, zone)}` : ""}` };
  });
  const escalations = open.escalations.map((one) => ({
    key: `e ${one.id}`, sign: "↑", tone: one.priority === "stat" ? "critical" : "warning", tab: "escalations",
      head: html`<strong>${humanize(one.priority)} escalation</strong>${one.assigned_to
        ? `, ${colleague(one.assigned_to, one.assigned_name)}` : ", not assigned"}`,
    more: `${humanize(one.status).toLowerCase()}, since ${dateTime(one.created_at, zone)}${one.tier > 0 ? `; tier ${one.tier} of 3` : ""}`,
  }));
  const rests = open.snoozes.map((one) => ({
    key: `s ${one.id}`, sign: "–", tone: "", tab: "alerts", head: html`<strong>${causeName(one.type)}</strong> snoozed`,
      more: `until ${dateTime(one.ends_at, zone)}, ${colleagueInSentence(one.created_by)}: ${one.reason}`,
  }));
  return [...unanswered, ...escalations, ...progress, ...rests];
}

const times = (/** @type {any} */ cause) => cause.alerts.length > 1 && ` ×${cause.alerts.length}`;
