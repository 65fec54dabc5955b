// The scheduled jobs: last run, result, next run; an administrator can run one now.
import { post } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton } from "../../ui/form.js";
import { ago, dateTime, fullTime, humanize, number } from "../../ui/format.js";
import { List } from "../../ui/table.js";
import { html, useState } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["Job"]} Job */

export function Jobs() {
  const [revision, setRevision] = useState(0);
  return html`<${List} name="" path="jobs/" size=${100} turn=${revision} caption="Jobs" nothing="No jobs" columns=${columns(() =>
    setRevision((n) => n + 1))} keyOf=${(/** @type {Job} */ job) => job.name} />`;
}

const nameOf = (/** @type {Job} */ job) => humanize(job.name.replaceAll("-", "_")).replace(/^Emr/, "EMR");

/** What a run counted, without zeros. @param {Job} job */
const resultText = ({ last_run: run }) => Object.entries(run?.counts ?? {}).filter(([, n]) => n !== 0).map(([what, n]) =>
  `${humanize(what).toLowerCase()} ${number(n)}`).join(", ");

/** @param {() => void} changed @returns {import("../../ui/table.js").Column[]} */
const columns = (changed) => [
  { name: "name", head: "Job", cell: (job) => html`<strong>${nameOf(job)}</strong>` },
  { name: "last", head: "Last run", cell: (job) => (job.last_run ? html`<span title=${fullTime(job.last_run.started_at)}>${
    ago(job.last_run.started_at)}</span>` : "Never") },
  { name: "status", head: "Result", cell: (job) => job.last_run && html`<${Badge} of=${job.last_run.status} />
    <span class="soft"> ${resultText(job)}</span>` },
  { name: "next", head: "Next run", cell: (job) => (job.next_run_at ? dateTime(job.next_run_at) : "–") },
  { name: "run", head: html`<span class="unseen">Actions</span>`, cell: (job) => html`<${ActionButton} act=${() =>
    post(`jobs/${job.name}/run/`)} doneText=${`${nameOf(job)}: done.`} done=${changed}
    aria-label=${`Run now: ${nameOf(job)}`}>Run now</${ActionButton}>` },
];
