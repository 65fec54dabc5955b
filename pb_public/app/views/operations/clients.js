// API clients: their scopes, allowed networks and last use; their secrets, shown once.
import { get, patch, post, remove } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { ago, dateTime } from "../../ui/format.js";
import { asProblem } from "../../ui/states.js";
import { Facts, List } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";
import { ReauthField, useReauth } from "../reauth.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["Client"]} Client */
/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["ClientCredentials"]} Credentials */

/** Labels of the API's scopes. @type {[string, string][]} */
const scopes = [
  ["ingest", "Send readings"], ["patients.read", "Read patients"], ["patients.write", "Create and replace patients"],
  ["observations.read", "Read readings"],
  ["alerts.read", "Read alerts and escalations"], ["billing.read", "Read billing"], ["changes.read", "Read the change feed"],
  ["devices.read", "Read devices and hubs"], ["devices.write", "Register and assign devices"],
  ["transmissions.read", "Read EMR deliveries"], ["thresholds.read", "Read alert limits"],
  ["webhooks.manage", "Manage webhooks"], ["alerts.acknowledge", "Acknowledge alerts"],
];
const resource = /^system\/(.+)\.rs$/;

export function Clients() {
  const [open, setOpen] = useState(/** @type {Client | "new" | null} */ (null));
  const [secret, setSecret] = useState(/** @type {Credentials | null} */ (null));
  const [revision, setRevision] = useState(0);
  const changed = () => setRevision((n) => n + 1);
  const close = () => setOpen(null);
  const rotated = (/** @type {Credentials} */ made) => { close(); setSecret(made); changed(); };
  return html`<div class="bar-of-acts"><p>Programs that send readings or read records. Each has its own credentials, and all its requests
    are in the audit trail under its name.</p>
      <button class="main" onClick=${() => setOpen("new")}>Add a client</button></div>
    <${List} path="clients/" turn=${revision} caption="Clients" nothing="No API clients yet" open=${setOpen}
      columns=${columns} />
    ${open === "new" && html`<${NewClient} close=${close} made=${rotated} />`}
    ${open !== null && open !== "new" && html`<${OneClient} client=${open} close=${close} rotated=${rotated}
      removed=${() => { close(); changed(); }} changed=${(next) => { setOpen(next); changed(); }} />`}
    ${secret && html`<${Secret} of=${secret} close=${() => setSecret(null)} />`}`;
}

/** @param {Client} client */
const stateOf = (client) => html`<${Badge} of=${client.active ? "online" : ""} text=${client.active ? "Active" : "Inactive"} />`;

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "name", head: "Name" },
  { name: "scopes", head: "Permissions", cell: (client) => client.scopes.join(", ") || "none" },
  { name: "allowed_cidrs", head: "Allowed from", cell: (client) => client.allowed_cidrs.join(", ") || "anywhere" },
  { name: "last_used_at", head: "Last used", cell: (client) => (client.last_used_at ? ago(client.last_used_at) : "Never") },
  { name: "active", head: "State", cell: stateOf },
];

/** The form's values in the server's format. @param {Record<string, any>} v */
const bodyOf = (v) => ({
  name: v.name,
  scopes: [...scopes.map(([scope]) => scope).filter((scope) => v[scope]), ...wordsOf(v.resources).map((name) => `system/${name}.rs`)],
  allowed_cidrs: wordsOf(v.allowed_cidrs), jwks_url: v.jwks_url, jwks: v.jwks ? JSON.parse(v.jwks) : null,
});

/** @param {string | null} text @returns {string[]} */
const wordsOf = (text) => (text ?? "").split(/[\s,]+/).filter(Boolean);

/** Sends the form, and maps errors of list items to the list's field. @param {ReturnType<typeof useReauth>} reauth
 *  @param {(body: any) => Promise<any>} act */
const sending = (reauth, act) => reauth.wrap(async (values, password) => {
  try {
    return await act({ ...bodyOf(values), ...password });
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw Object.assign(asProblem(error), { fields: { jwks: ["Must be JSON."] } });
    }
    const problem = asProblem(error);
    for (const [name, messages] of Object.entries(problem.fields)) {
      const [list = ""] = name.split(".");
      if (list !== name) {
        problem.fields[list] = [...new Set([...(problem.fields[list] ?? []), ...messages])];
      }
    }
    if (problem.fields.scopes) {
      problem.fields.resources = problem.fields.scopes;
    }
    throw problem;
  }
});

/** @param {{client?: Client, reauth: ReturnType<typeof useReauth>, errors: Record<string, string[]>}} props */
const Fields = ({ client, reauth, errors }) => html`
  <${Field} label="Name" name="name" maxlength="100" value=${client?.name}
    hint="Owner and purpose, for example “Device cloud, readings”." errors=${errors} />
  <fieldset><legend>Permissions</legend>${scopes.map(([scope, text]) => html`<${Field} key=${scope} label=${text} name=${scope}
    kind="checkbox"
    value=${client?.scopes.includes(/** @type {any} */ (scope))} />`)}</fieldset>
  <${Field} label="FHIR read access" name="resources" value=${client?.scopes.flatMap((scope) => resource.exec(scope)?.[1] ?? []).join(" ")}
    hint="Resource types, for example Patient Observation, or * for all." errors=${errors} />
  <${Field} label="Allowed IP addresses" name="allowed_cidrs" value=${client?.allowed_cidrs.join(" ")}
    hint="Addresses or ranges, for example 192.0.2.0/24. Leave blank to allow any address." errors=${errors} />
  <${Field} label="URL of its public keys" name="jwks_url" kind="url" value=${client?.jwks_url}
    hint="For clients that sign: https URL of a JSON Web Key Set." errors=${errors} />
  <${Field} label="Or public keys" name="jwks" kind="textarea" value=${client?.jwks ? JSON.stringify(client.jwks)
    : ""} hint="Public keys only (JWKS)." errors=${errors} />
  <${ReauthField} reauth=${reauth} errors=${errors} />`;

/** @param {{close: () => void, made: (made: Credentials) => void}} props */
function NewClient({ close, made }) {
  const reauth = useReauth("current_password");
  return html`<${Dialog} wide title="Add a client" close=${close}>
    <${Form} submit="Add" cancel=${close} send=${sending(reauth, (body) => post("clients/", body))} done=${made}>${(errors) =>
      html`<${Fields} reauth=${reauth} errors=${errors} />`}</${Form}>
  </${Dialog}>`;
}

/** @param {{of: Credentials, close: () => void}} props */
const Secret = ({ of, close }) => html`<${Dialog} title=${`Secret of ${of.name}`} close=${close}>
  <p>Shown only once. Send it over a secure channel. Clients that sign with their own key do not need it.</p>
  <${Facts} of=${[["ID", html`<code>${of.id}</code>`],
    ["Secret", of.client_secret ? html`<code>${of.client_secret}</code>` : "None: it signs with its own key"]]} />
  <div class="actions"><button class="main" onClick=${close}>I’ve saved it</button></div>
</${Dialog}>`;

/** @param {{client: Client, close: () => void, changed: (client: Client) => void, rotated: (made: Credentials) => void,
 * removed: () => void}} props */
function OneClient({ client, close, changed, rotated, removed }) {
  const reauth = useReauth("current_password");
  return html`<${Dialog} wide title=${client.name} close=${close}>
  <${Facts} of=${[["ID", html`<code>${client.id}</code>`], ["State", stateOf(client)], ["Created", dateTime(client.created_at)],
    ["Last used", client.last_used_at ? dateTime(client.last_used_at) : "Never"]]} />
  <${Acts} client=${client} changed=${changed} rotated=${rotated} removed=${removed} />
  <h3>Edit</h3>
  <${Form} submit="Save" send=${sending(reauth, (body) => patch(`clients/${client.id}/`, body))}
    done=${(answer) => { toast("Saved. Applies from the next request."); changed(answer); }}>${(errors) => html`
    <${Fields} client=${client} reauth=${reauth} errors=${errors} />`}</${Form}>
</${Dialog}>`;
}

const dangers = {
  revoke: ["Deactivate client", "All its tokens are revoked immediately, and it gets no new ones until it is activated again."],
  rotate: ["Create new secret",
    "The old secret and all tokens are revoked immediately. The client has no access until it has the new secret."],
  remove: ["Remove client", "Access ends immediately and permanently. Its requests stay in the audit trail."],
};

/** @param {{client: Client, changed: (client: Client) => void, rotated: (made: Credentials) => void, removed: () => void}} props */
function Acts({ client, changed, rotated, removed }) {
  const [confirming, setConfirming] = useState(/** @type {keyof typeof dangers | ""} */ (""));
  const path = `clients/${client.id}/`;
  const reauth = useReauth("current_password");
  const acts = {
    revoke: () => patch(path, { active: false }).then(() => get(path)).then(changed),
    rotate: (/** @type {any} */ password) => post(`${path}rotate-secret/`, password).then(rotated),
    remove: () => remove(path).then(removed),
  };
  return html`<div class="actions">
      ${client.active ? html`<button onClick=${() => setConfirming("revoke")}>Deactivate</button>`
        : html`<${ActionButton} kind="main" act=${() => patch(path, { active: true }).then(changed)} doneText="Client activated.">
          Activate</${ActionButton}>`}
      <button onClick=${() => setConfirming("rotate")}>Rotate secret</button><button
        onClick=${() => setConfirming("remove")}>Remove</button>
    </div>
    ${confirming && html`<div class="notice warning" role="alert"><p>${dangers[confirming][1]}</p>
      <${Form} danger submit=${dangers[confirming][0]} cancel=${() => setConfirming("")}
        done=${() => { toast("Done."); setConfirming(""); }}
        send=${reauth.wrap((values, password) => acts[confirming](password))}>${(errors) =>
        html`<${ReauthField} reauth=${reauth} errors=${errors} />`}</${Form}></div>`}`;
}
