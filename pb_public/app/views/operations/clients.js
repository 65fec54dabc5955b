// Machines with credentials of their own: what each may do and from where, when it was last heard of; its secret, shown once.
import { get, patch, post, remove } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { ago, dateTime } from "../../ui/format.js";
import { asProblem } from "../../ui/states.js";
import { Facts, List } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";

/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["Client"]} Client */
/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["ClientCredentials"]} Credentials */

/** What the scopes of the API open, in the words of people. @type {[string, string][]} */
const scopes = [
  ["ingest", "Send readings"], ["patients.read", "Read patients"], ["patients.write", "Create and replace patients"],
  ["observations.read", "Read readings"],
  ["alerts.read", "Read alerts and escalations"], ["billing.read", "Read billing"], ["changes.read", "Follow what changes"],
];
const resource = /^system\/(.+)\.rs$/;

export function Clients() {
  const [open, show] = useState(/** @type {Client | "new" | null} */ (null));
  const [secret, reveal] = useState(/** @type {Credentials | null} */ (null));
  const [turn, again] = useState(0);
  const changed = () => again((n) => n + 1);
  const close = () => show(null);
  const rotated = (/** @type {Credentials} */ made) => { close(); reveal(made); changed(); };
  return html`<div class="bar-of-acts"><p>Programs that send readings or read records. Each has its own credentials, and everything it does
    stands in the audit trail under its name.</p>
      <button class="main" onClick=${() => show("new")}>Add a client</button></div>
    <${List} path="clients/" turn=${turn} caption="Clients" nothing="No machine has credentials of its own" open=${show}
      columns=${columns} />
    ${open === "new" && html`<${NewClient} close=${close} made=${rotated} />`}
    ${open !== null && open !== "new" && html`<${OneClient} client=${open} close=${close} rotated=${rotated}
      removed=${() => { close(); changed(); }} changed=${(next) => { show(next); changed(); }} />`}
    ${secret && html`<${Secret} of=${secret} close=${() => reveal(null)} />`}`;
}

/** @param {Client} client */
const stateOf = (client) => html`<${Badge} of=${client.active ? "online" : ""} text=${client.active ? "In use" : "Out of use"} />`;

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "name", head: "Name" },
  { name: "scopes", head: "May", cell: (client) => client.scopes.join(", ") || "nothing" },
  { name: "allowed_cidrs", head: "From", cell: (client) => client.allowed_cidrs.join(", ") || "anywhere" },
  { name: "last_used_at", head: "Last heard of", cell: (client) => (client.last_used_at ? ago(client.last_used_at) : "Never") },
  { name: "active", head: "State", cell: stateOf },
];

/** What the form says, as the service takes it. @param {Record<string, any>} v */
const bodyOf = (v) => ({
  name: v.name,
  scopes: [...scopes.map(([scope]) => scope).filter((scope) => v[scope]), ...wordsOf(v.resources).map((name) => `system/${name}.rs`)],
  allowed_cidrs: wordsOf(v.allowed_cidrs), jwks_url: v.jwks_url, jwks: v.jwks ? JSON.parse(v.jwks) : null,
});

/** @param {string | null} text @returns {string[]} */
const wordsOf = (text) => (text ?? "").split(/[\s,]+/).filter(Boolean);

/** Sends the form, and has what is wrong with a part of a list named at the whole. @param {(body: any) => Promise<any>} act */
const sending = (act) => async (/** @type {Record<string, any>} */ values) => {
  try {
    return await act(bodyOf(values));
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
};

/** @param {{client?: Client, errors: Record<string, string[]>}} props */
const Fields = ({ client, errors }) => html`
  <${Field} label="Name" name="name" maxlength="100" value=${client?.name}
    hint="Whose it is and what for, such as “Device cloud, readings”." errors=${errors} />
  <fieldset><legend>It may</legend>${scopes.map(([scope, text]) => html`<${Field} key=${scope} label=${text} name=${scope} kind="checkbox"
    value=${client?.scopes.includes(/** @type {any} */ (scope))} />`)}</fieldset>
  <${Field} label="Read in FHIR" name="resources" value=${client?.scopes.flatMap((scope) => resource.exec(scope)?.[1] ?? []).join(" ")}
    hint="Resources, such as Patient Observation, or * for all." errors=${errors} />
  <${Field} label="From these addresses only" name="allowed_cidrs" value=${client?.allowed_cidrs.join(" ")}
    hint="Addresses or ranges, such as 192.0.2.0/24. Empty: from anywhere." errors=${errors} />
  <${Field} label="Address of its public keys" name="jwks_url" kind="url" value=${client?.jwks_url}
    hint="If it signs: https, a JSON Web Key Set." errors=${errors} />
  <${Field} label="Or the keys themselves" name="jwks" kind="textarea" value=${client?.jwks ? JSON.stringify(client.jwks)
    : ""} hint="Public keys only." errors=${errors} />`;

/** @param {{close: () => void, made: (made: Credentials) => void}} props */
const NewClient = ({ close, made }) => html`<${Dialog} wide title="Add a client" close=${close}>
  <${Form} submit="Add" cancel=${close} send=${sending((body) => post("clients/", body))} done=${made}>${(errors) =>
    html`<${Fields} errors=${errors} />`}</${Form}>
</${Dialog}>`;

/** @param {{of: Credentials, close: () => void}} props */
const Secret = ({ of, close }) => html`<${Dialog} title=${`The secret of ${of.name}`} close=${close}>
  <p>It is shown only now. Hand it over by a way that nobody else reads. A client that signs with a key of its own has no need of it.</p>
  <${Facts} of=${[["Id", html`<code>${of.id}</code>`], ["Secret", html`<code>${of.client_secret}</code>`]]} />
  <div class="actions"><button class="main" onClick=${close}>I have kept it</button></div>
</${Dialog}>`;

/** @param {{client: Client, close: () => void, changed: (client: Client) => void, rotated: (made: Credentials) => void,
 * removed: () => void}} props */
const OneClient = ({ client, close, changed, rotated, removed }) => html`<${Dialog} wide title=${client.name} close=${close}>
  <${Facts} of=${[["Id", html`<code>${client.id}</code>`], ["State", stateOf(client)], ["Made", dateTime(client.created_at)],
    ["Last heard of", client.last_used_at ? dateTime(client.last_used_at) : "Never"]]} />
  <${Acts} client=${client} changed=${changed} rotated=${rotated} removed=${removed} />
  <h3>Change</h3>
  <${Form} submit="Save" send=${sending((body) => patch(`clients/${client.id}/`, body))}
    done=${(answer) => { toast("Saved. It holds from the next request on."); changed(answer); }}>${(errors) => html`
    <${Fields} client=${client} errors=${errors} />`}</${Form}>
</${Dialog}>`;

const dangers = {
  revoke: ["Put it out of use", "It is out at once: every token of it ends, and it gets no other until it is in use again."],
  rotate: ["Another secret", "The old secret and every token of it end at once. It is out until it has the new one."],
  remove: ["Remove it", "It is out at once and for ever. What it did stays in the audit trail."],
};

/** @param {{client: Client, changed: (client: Client) => void, rotated: (made: Credentials) => void, removed: () => void}} props */
function Acts({ client, changed, rotated, removed }) {
  const [sure, ask] = useState(/** @type {keyof typeof dangers | ""} */ (""));
  const path = `clients/${client.id}/`;
  const acts = {
    revoke: () => patch(path, { active: false }).then(() => get(path)).then(changed),
    rotate: () => post(`${path}rotate-secret/`).then(rotated),
    remove: () => remove(path).then(removed),
  };
  return html`<div class="actions">
      ${client.active ? html`<button onClick=${() => ask("revoke")}>Put out of use</button>`
        : html`<${ActionButton} kind="main" act=${() => patch(path, { active: true }).then(changed)} said="It is in use again.">
          Put to use again</${ActionButton}>`}
      <button onClick=${() => ask("rotate")}>Rotate the secret</button><button onClick=${() => ask("remove")}>Remove</button>
    </div>
    ${sure && html`<div class="notice warning" role="alert"><p>${dangers[sure][1]}</p>
      <div class="actions"><button onClick=${() => ask("")}>Leave it</button><${ActionButton} kind="danger" act=${acts[sure]} said="Done."
        done=${() => ask("")}>${dangers[sure][0]}</${ActionButton}></div></div>`}`;
}
