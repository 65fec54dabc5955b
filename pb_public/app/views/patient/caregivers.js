// The people who help the patient: their access to the portal, its scope and end.
import { get, post, remove } from "../../api.js";
import { can } from "../../permissions.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { calendarDate, humanize } from "../../ui/format.js";
import { relationships } from "../../portal/relationships.js";
import { EmptyState, Loaded, useLoad } from "../../ui/states.js";
import { daysAgo } from "../../ui/time.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";

const scopes = /** @type {[string, string][]} */ ([["read", "Sees readings"], ["enter", "Sees and enters readings"]]);

/** @param {{id: string}} props */
export function Caregivers({ id }) {
  const [isAdding, setAdding] = useState(false);
  const list = useLoad((signal) => get(`patients/${id}/caregivers/`, { page_size: 100 }, signal), [id]);
  const may = can("manageCaregivers");
  return html`<section class="card" aria-labelledby="caregivers">
    <div class="heading"><h2 id="caregivers">Caregivers</h2>${may && html`<button onClick=${() => setAdding(true)}>Invite</button>`}</div>
    <${Loaded} from=${list} empty=${(data) => data.count === 0} nothing=${html`<${EmptyState} title="No caregivers">
      ${may && "A caregiver signs in with their own account and sees this patient’s readings."}</${EmptyState}>`}>
      ${(data) => html`<ul class="plain-list">${data.results.map((one) => html`<li key=${one.id}>
        <span><bdi>${one.name ?? one.email}</bdi>, ${humanize(one.relationship)}<span class="two">${one.name && `${one.email} · `}${
          scopes.find(([code]) => code === one.scope)?.[1]}${one.until && ` until ${calendarDate(one.until)}`}</span></span>
        ${may && html`<${ActionButton} act=${() => remove(`patients/${id}/caregivers/${one.id}/`)} doneText="Access ended."
          done=${list.reload} aria-label=${`End access of ${one.email}`}>End access</${ActionButton}>`}</li>`)}</ul>`}
    </${Loaded}>
    ${isAdding && html`<${InviteDialog} id=${id} close=${() => setAdding(false)} done=${list.reload} />`}
  </section>`;
}

/** @param {{id: string, close: () => void, done: () => void}} props */
const InviteDialog = ({ id, close, done }) => html`<${Dialog} title="Invite a caregiver" close=${close}>
  <${Form} submit="Invite" cancel=${close} send=${(/** @type {any} */ values) => post(`patients/${id}/caregivers/`, values)}
    done=${(/** @type {any} */ one) => { toast(`Added. ${one.email} gets a mail.`); close(); done(); }}>${(errors) => html`
    <${Field} label="Email" name="email" kind="email" autocomplete="off" required errors=${errors} />
    <${Field} label="Relationship" name="relationship" kind="select" value="spouse" errors=${errors}
      options=${relationships.map((code) => [code, humanize(code)])} />
    <${Field} label="Access" name="scope" kind="select" value="read" options=${scopes} errors=${errors} />
    <${Field} label="Last day" name="until" kind="date" min=${daysAgo(0)} errors=${errors} hint="Leave blank for no end" />`}</${Form}>
</${Dialog}>`;
