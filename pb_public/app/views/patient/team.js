// The patient's care team and consents.
import { get, post, put } from "../../api.js";
import { can } from "../../permissions.js";
import { me } from "../../session.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { day, humanize } from "../../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { StaffPicker } from "../../ui/staff_picker.js";
import { Table } from "../../ui/table.js";
import { daysAgo } from "../../ui/time.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";
import { ConsentFields, consentName } from "../enrollment/consent.js";
import { Members, membersOf, teamRoles } from "../enrollment/order.js";

/** @param {{id: string}} props */
export function CareTeam({ id }) {
  const [isAdding, setAdding] = useState(false);
  const team = useLoad((signal) => get(`patients/${id}/care-team/`, {}, signal), [id]);
  const may = can("changeCareTeam");
  const keep = (/** @type {any} */ body) => put(`patients/${id}/care-team/`, body);
  const others = (/** @type {any} */ data, /** @type {number} */ but = 0) =>
    data.members.filter((m) => m.user_id !== but).map(({ user_id, role }) => ({ user_id, role }));
  return html`<section class="card" aria-labelledby="team">
    <div class="heading"><h2 id="team">Care team</h2>${may && team.data && html`<button
      onClick=${() => setAdding(true)}>Edit</button>`}</div>
    <${Loaded} from=${team}>${(data) => html`
      <p>Primary provider: <strong>${data.primary_provider_name ?? "not assigned"}</strong></p>
      ${data.members.length === 0 ? html`<p>No other members yet.</p>`
        : html`<ul class="plain-list">${data.members.map((m) => html`<li key=${m.user_id}><span>${m.name}, ${humanize(m.role)}</span>
        ${may && html`<${ActionButton} act=${() => keep({ members: others(data, m.user_id) })} doneText="Removed." done=${team.reload}
          aria-label=${`Remove ${m.name} from the care team`}>Remove</${ActionButton}>`}</li>`)}</ul>`}
      ${may && teamRoles.includes(me.value?.role ?? "") && !data.members.some((m) => m.user_id === me.value?.id) && html`
        <${ActionButton} act=${() => keep({ members: [...others(data), { user_id: me.value?.id }] })} doneText="You joined the team."
          done=${team.reload}>Join the team</${ActionButton}>`}
      ${isAdding && html`<${MemberDialog} team=${data} keep=${keep} close=${() => setAdding(false)} done=${team.reload} />`}`}
    </${Loaded}>
  </section>`;
}

/** @param {{team: any, keep: (body: any) => Promise<any>, close: () => void, done: () => void}} props */
function MemberDialog({ team, keep, close, done }) {
  const before = (/** @type {any} */ member) => team.members.some((/** @type {any} */ m) => m.user_id === member.user_id);
  const send = (/** @type {any} */ v) => keep({
    primary_provider_id: v.primary_provider_id ? Number(v.primary_provider_id) : null,
    members: membersOf(v.members ?? [], team.members).map((member) => (before(member) || !v.role ? member : { ...member, role: v.role })),
  });
  return html`<${Dialog} title="Care team" close=${close}>
    <${Form} submit="Save" cancel=${close} send=${send} done=${() => { toast("Saved."); close(); done(); }}>${(errors) => html`
      <${StaffPicker} label="Primary provider" name="primary_provider_id" by="id" roles=${["provider"]} value=${team.primary_provider_id}
        emptyLabel="Not assigned" errors=${errors} autofocus />
      <${Members} members=${team.members} errors=${errors} label="Members" />
      <${Field} label="Role of new members" name="role" hint="Leave blank to use their own role" errors=${errors} />`}
    </${Form}>
  </${Dialog}>`;
}

/** @param {{id: string, changed?: () => void}} props */
export function Consents({ id, changed = () => {} }) {
  const [dialog, setDialog] = useState(/** @type {any} */ (null));
  const list = useLoad((signal) => get(`patients/${id}/consents/`, { page_size: 50 }, signal), [id]);
  const done = () => { list.reload(); changed(); };
  return html`<section class="card" aria-labelledby="consents">
    <div class="heading"><h2 id="consents">Consents</h2>${can("changeConsents")
      && html`<button onClick=${() => setDialog("grant")}>Record consent</button>`}</div>
    <${Loaded} from=${list} empty=${(data) => data.results.length === 0} nothing=${html`<${EmptyState} title="No consent on record">
      ${can("changeConsents") && "Monitoring can be billed only with consent."}</${EmptyState}>`}>
      ${(data) => html`<${Table} caption="Consents on record" rows=${data.results} columns=${[
        { name: "type", head: "Consent to", cell: (c) => consentName(c.type) }, { name: "status", head: "State", cell: (c) =>
          html`<${Badge} of=${c.status} />` }, { name: "method", head: "Method", cell: (c) => humanize(c.method) },
        { name: "granted_at", head: "Granted", cell: (c) => `${day(c.granted_at)}${c.expires_at ? ` until ${day(c.expires_at)}` : ""}` },
        { name: "revoked", head: "Revoked", cell: (c) => (c.revoked_at
          ? `${day(c.effective_at ?? c.revoked_at)}: ${c.revoke_reason ?? ""}` : "–") },
        ...(can("changeConsents") ? [{ name: "act", head: html`<span class="unseen">Actions</span>`, cell: (c) => c.status === "active"
          && html`<button onClick=${() => setDialog(c)}
            aria-label=${`Revoke the consent to ${consentName(c.type)}`}>Revoke</button>` }] : []),
      ]} />`}
    </${Loaded}>
    ${dialog === "grant" && html`<${ConsentDialog} id=${id} close=${() => setDialog(null)} done=${done} />`}
    ${dialog?.id && html`<${RevokeDialog} id=${id} consent=${dialog} close=${() => setDialog(null)} done=${done} />`}
  </section>`;
}

/** @param {{id: string, close: () => void, done: () => void}} props */
const ConsentDialog = ({ id, close, done }) => html`<${Dialog} title="Record consent" close=${close}>
  <${Form} submit="Record" cancel=${close} send=${(values) => post(`patients/${id}/consents/`, values)}
    done=${() => { toast("Consent recorded."); close(); done(); }}>${(errors) => html`
    <${ConsentFields} errors=${errors} />`}</${Form}>
</${Dialog}>`;

/** @param {{id: string, consent: any, close: () => void, done: () => void}} props */
const RevokeDialog = ({ id, consent, close, done }) => html`<${Dialog} title="Revoke consent" close=${close}>
  <p>${consentName(consent.type)}, granted ${day(consent.granted_at)}.</p>
  <${Form} submit="Revoke" danger cancel=${close} send=${(values) => post(`patients/${id}/consents/${consent.id}/revoke/`,
    { ...values, reason: values.reason ?? "" })}
    done=${() => { toast("Consent revoked."); close(); done(); }}>${(errors) => html`
    <${Field} label="Reason" name="reason" kind="textarea" errors=${errors} />
    <${Field} label="Ended on" name="effective_at" kind="date" max=${daysAgo(0)} errors=${errors} hint="If before today" />`}</${Form}>
</${Dialog}>`;
