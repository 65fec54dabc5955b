// The health of services and ingestion, refreshed every minute.
import { get, Unreachable } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { ago, fullTime, number, humanize } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { html, useEffect } from "../../view.js";
import { Figures } from "../reports/body.js";

const pace = 60_000;
const names = { database: "Database", emr: "EMR", background_worker: "Background workers", fhir_engine: "FHIR engine" };

/** The health endpoint is outside the API's root, and returns its body also with 503. @param {AbortSignal} signal */
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
      <div class="bar-of-acts"><p role="status"><${Badge} of=${data.status}
        text=${data.status === "healthy" ? "All systems healthy" : `System status: ${humanize(data.status)
        .toLowerCase()}`} /> <span class="soft">Version ${data.version}, ${fullTime(data.timestamp)}</span></p>
        <button onClick=${() => { services.reload(); ingestion.reload(); }}>Refresh</button></div>
      <div class="services">${Object.entries(data.services).map(([name, service]) => html`<div key=${name}><strong>${names[name]
        ?? humanize(name)}</strong>
        <${Badge} of=${service.status} /> <small class="soft">${detail(service)}</small></div>`)}</div>`}
    </${Loaded}>
    <h2>Ingestion</h2>
    <${Loaded} from=${ingestion}>${(data) =>
      html`<p role="status"><${Badge} of=${data.status} /> <span class="soft">Last reading stored ${ago(data.last_processed_at)}</span></p>
      <${Figures} of=${[["Queued", number(data.queue_depth)], ["Readings today", number(data.observations_today)],
        ["In the last hour", number(data.observations_this_hour)], ["Processing rate", data.processing_rate],
        ["Pending for the EMR", number(data.fhir_pipeline.pending)], ["Delivered today", number(data.fhir_pipeline.transmitted_today)],
        ["Failed today", number(data.fhir_pipeline.failed_today)]]} />`}
    </${Loaded}>`;
}

/** @param {any} service */
function detail(service) {
  if ("workers" in service) {
    return `${service.workers} workers, ${service.queue_depth} queued`;
  }
  return [service.response_time_ms !== null && `${service.response_time_ms} ms`, service.detail && humanize(service.detail)].filter(Boolean)
    .join(", ");
}
