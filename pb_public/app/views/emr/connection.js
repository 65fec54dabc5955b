// How the service signs in at the EMR: by itself for deliveries, and in a person's name for searches; with tests of both.
import { get, post } from "../../api.js";
import { can } from "../../can.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton } from "../../ui/form.js";
import { ago, dateTime } from "../../ui/format.js";
import { asProblem, Loaded, useLoad } from "../../ui/states.js";
import { Facts } from "../../ui/table.js";
import { html, useEffect, useState } from "../../view.js";

/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["EMRStatus"]} Status */

export function Connection() {
  const status = useLoad((signal) => get("emr/auth/status/", {}, signal), []);
  useEffect(() => { // somebody who comes back from the EMR's page wants to see what became of it
    addEventListener("focus", status.reload);
    return () => removeEventListener("focus", status.reload);
  }, []);
  return html`<${Loaded} from=${status}>${(/** @type {Status} */ data) => html`<div class="grid">
    <section class="card"><h2>As the service</h2>
      <p>Used for deliveries. <${Badge} of=${data.jwt_configured ? "connected" : "offline"} text=${data.jwt_configured ? "Configured"
        : "Not configured"} /></p>
      <${Facts} of=${[["FHIR address", data.fhir_base_url], ["Last sign-in that worked", data.jwt_last_success ? ago(data.jwt_last_success)
        : "Never"],
        ["Scopes", data.scopes.join(", ") || "–"]]} />
      ${can("connectEMR") && html`<${Test} name="Test the sign-in" path="emr/test/jwt/" facts=${signInFacts} done=${status.reload} />
        <${Test} name="Test the connection" path="emr/test/connection/" facts=${connectionFacts} />`}
    </section>
    <section class="card"><h2>In a person’s name</h2>
      <p>Used for searches. <${Badge} of=${data.oauth2_configured ? "connected" : "offline"} text=${data.oauth2_configured ? "Connected"
        : "Not connected"} /></p>
      <${Facts} of=${[["Connected by", data.oauth2_connected_by], ["Good until", dateTime(data.oauth2_token_expires)],
        ["Connect again before", dateTime(data.oauth2_refresh_expires)]]} />
      ${can("connectEMR") && data.jwt_configured && html`<${Connect} connected=${data.oauth2_configured} />`}
    </section>
  </div>`}</${Loaded}>`;
}

/** The EMR's page opens in a window of its own: leaving this one would sign off. @param {{connected: boolean}} props */
function Connect({ connected }) {
  const [began, begin] = useState(false);
  const start = async () => {
    const page = window.open("", "_blank"); // at once, or the browser takes it for an advertisement
    try {
      const { authorization_url } = await post("emr/auth/start/");
      if (!page) {
        location.assign(authorization_url);
        return;
      }
      page.opener = null;
      page.location.replace(authorization_url);
      begin(true);
    } catch (error) {
      page?.close();
      throw error;
    }
  };
  return html`<div class="actions"><${ActionButton} kind=${connected ? "" : "main"} act=${start}>${connected ? "Connect again"
    : "Connect"}</${ActionButton}></div>
    ${began && html`<p class="notice" role="status">Sign in on the EMR’s page that has opened, within ten minutes. Come back here when it
      says that you are connected.</p>`}`;
}

/** @param {{name: string, path: string, facts: (answer: any) => [any, any][], done?: () => void}} props */
function Test({ name, path, facts, done }) {
  const [outcome, keep] = useState(/** @type {{answer?: any, problem?: import("../../api.js").Problem} | null} */ (null));
  const act = () => post(path).then((answer) => { keep({ answer }); done?.(); }, (error) => keep({ problem: asProblem(error) }));
  return html`<div class="actions"><${ActionButton} act=${act}>${name}</${ActionButton}></div>
    <div role="status">
      ${outcome?.answer && html`<p><${Badge} of=${outcome.answer.status === "success" ? "succeeded" : outcome.answer.status} /></p>
        <${Facts} of=${facts(outcome.answer)} />`}
      ${outcome?.problem && html`<p class="notice problem">${outcome.problem.message}</p>`}
    </div>`;
}

/** @param {any} answer @returns {[any, any][]} */
const signInFacts = (answer) => [["Token good for", `${answer.expires_in} s`], ["Scope", answer.scope]];
/** @param {any} answer @returns {[any, any][]} */
const connectionFacts = (answer) => [["Server", answer.fhir_server], ["FHIR version", answer.fhir_version],
  ["Can do", answer.capabilities.join(", ")], ["Answered in", `${answer.response_time_ms} ms`]];
