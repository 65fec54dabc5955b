// How the services do and how ingestion goes, looked at once a minute while the page is open.
import { get, Unreachable } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { ago, fullTime, number, words } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { html, useEffect } from "../../view.js";
import { Figures } from "../reports/body.js";

const pace = 60_000;
const names = { database: "Database", emr: "EMR", background_worker: "Background workers", fhir_engine: "FHIR engine" };

/** Health answers with its body also when it is 503, and is not part of the API's root. @param {AbortSignal} signal */
const health = (signal) => fetch("/health/", { signal, cache: "no-store", credentials: "omit" }).then((answer) => answer.json(),
  () => { throw new Unreachable(); });

export function Health() {
  const services = useLoad(health, []);
  const ingestion = useLoad((signal) => get("ingestion/status/", {}, signal), []);
  useEffect(() => {
    const timer = setInterval(() => { services.reload(); ingestion.reload(); }, pace);
    return () => clearInterval(timer);
  }, []);
  return html`<${Loaded} from=${services}>${(data) => html`
      <div class="bar-of-acts"><p role="status"><${Badge} of=${data.status} text=${`All in all: ${words(data.status)
        .toLowerCase()}`} /> <span class="soft">Version ${data.version}, ${fullTime(data.timestamp)}</span></p>
        <button onClick=${() => { services.reload(); ingestion.reload(); }}>Look again</button></div>
      <div class="services">${Object.entries(data.services).map(([name, service]) => html`<div key=${name}><strong>${names[name]
        ?? words(name)}</strong>
        <${Badge} of=${service.status} /> <small class="soft">${detail(service)}</small></div>`)}</div>`}
    </${Loaded}>
    <h2>Ingestion</h2>
    <${Loaded} from=${ingestion}>${(data) =>
      html`<p role="status"><${Badge} of=${data.status} /> <span class="soft">Last reading stored ${ago(data.last_processed_at)}</span></p>
      <${Figures} of=${[["Waiting", number(data.queue_depth)], ["Readings today", number(data.observations_today)],
        ["In the last hour", number(data.observations_this_hour)], ["Pace", data.processing_rate],
        ["Waiting for the EMR", number(data.fhir_pipeline.pending)], ["Delivered today", number(data.fhir_pipeline.transmitted_today)],
        ["Failed today", number(data.fhir_pipeline.failed_today)]]} />`}
    </${Loaded}>`;
}

/** @param {any} service */
function detail(service) {
  if ("workers" in service) {
    return `${service.workers} workers, ${service.queue_depth} waiting`;
  }
  return [service.response_time_ms !== null && `${service.response_time_ms} ms`, service.detail && words(service.detail)].filter(Boolean)
    .join(", ");
}
