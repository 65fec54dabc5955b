// The EMR connection: the server's own sign-in for deliveries, and a user's for searches, with tests of both.
import { get, post } from "../../api.js";
import { can } from "../../permissions.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton } from "../../ui/form.js";
import { ago, dateTime } from "../../ui/format.js";
import { asProblem, Loaded, useLoad } from "../../ui/states.js";
import { Facts } from "../../ui/table.js";
import { html, useEffect, useState } from "../../view.js";
import { Offers } from "./offers.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["EMRStatus"]} Status */

export function Connection() {
  const status = useLoad((signal) => get("emr/auth/status/", {}, signal), []);
  useEffect(() => { // shows the result when the user returns from the EMR's page
    addEventListener("focus", status.reload);
    return () => removeEventListener("focus", status.reload);
  }, []);
  return html`<${Loaded} from=${status}>${(/** @type {Status} */ data) => html`<div class="grid">
    <section class="card"><h2>Server sign-in</h2>
      <p>Used for deliveries. <${Badge} of=${data.jwt_configured ? "connected" : "offline"} text=${data.jwt_configured ? "Configured"
        : "Not configured"} /></p>
      <${Facts} of=${[["FHIR base URL", data.fhir_base_url], ["Last successful sign-in", data.jwt_last_success ? ago(data.jwt_last_success)
        : "Never"],
        ["Scopes", data.scopes.join(", ") || "–"]]} />
      ${can("connectEMR") && html`<${Test} name="Test sign-in" path="emr/test/jwt/" facts=${signInFacts} done=${status.reload} />
        <${Test} name="Test connection" path="emr/test/connection/" facts=${connectionFacts} done=${status.reload} />`}
    </section>
    <section class="card"><h2>User sign-in</h2>
      <p>Used for searches. <${Badge} of=${data.oauth2_configured ? "connected" : "offline"} text=${data.oauth2_configured ? "Connected"
        : "Not connected"} /></p>
      <${Facts} of=${[["Connected by", data.oauth2_connected_by], ["Valid until", dateTime(data.oauth2_token_expires)],
        ["Reconnect before", dateTime(data.oauth2_refresh_expires)]]} />
      ${can("connectEMR") && data.jwt_configured && html`<${Connect} connected=${data.oauth2_configured} />`}
    </section>
    ${data.delivery && html`<${Offers} delivery=${data.delivery} />`}
  </div>`}</${Loaded}>`;
}

/** The EMR's page opens in a new window, because leaving this page would sign the user out. @param {{connected: boolean}} props */
function Connect({ connected }) {
  const [hasStarted, setStarted] = useState(false);
  const start = async () => {
    const page = window.open("", "_blank"); // immediately, or the browser blocks the pop-up
    try {
      const { authorization_url } = await post("emr/auth/start/");
      if (!page) {
        location.assign(authorization_url);
        return;
      }
      page.opener = null;
      page.location.replace(authorization_url);
      setStarted(true);
    } catch (error) {
      page?.close();
      throw error;
    }
  };
  return html`<div class="actions"><${ActionButton} kind=${connected ? "" : "main"} act=${start}>${connected ? "Reconnect"
    : "Connect"}</${ActionButton}></div>
    ${hasStarted && html`<p class="notice" role="status">Sign in within ten minutes on the EMR page that opened, then return here when it
      shows that you are connected.</p>`}`;
}

/** @param {{name: string, path: string, facts: (answer: any) => [any, any][], done?: () => void}} props */
function Test({ name, path, facts, done }) {
  const [outcome, setOutcome] = useState(/** @type {{answer?: any, problem?: import("../../api.js").Problem} | null} */ (null));
  const act = () => post(path).then((answer) => { setOutcome({ answer }); done?.(); },
    (error) => setOutcome({ problem: asProblem(error) }));
  return html`<div class="actions"><${ActionButton} act=${act}>${name}</${ActionButton}></div>
    <div role="status">
      ${outcome?.answer && html`<p><${Badge} of=${outcome.answer.status === "success" ? "succeeded" : outcome.answer.status} /></p>
        <${Facts} of=${facts(outcome.answer)} />`}
      ${outcome?.problem && html`<p class="notice problem">${outcome.problem.message}</p>`}
    </div>`;
}

/** @param {any} answer @returns {[any, any][]} */
const signInFacts = (answer) => [["Token valid for", `${answer.expires_in} s`], ["Scope", answer.scope]];
/** @param {any} answer @returns {[any, any][]} */
const connectionFacts = (answer) => [["Server", answer.fhir_server], ["FHIR version", answer.fhir_version],
  ["Capabilities", answer.capabilities.join(", ")], ["Response time", `${answer.response_time_ms} ms`],
  ["Scopes to request from the EMR's administrator", answer.missing_scopes.map((/** @type {{scope: string}} */ missing) => missing.scope)
    .join(", ") || "None"]];
