// One's own passkeys: add one and name it, give it another name, remove it.
import { call, get, patch, post } from "../api.js";
import { make, offered } from "../passkeys.js";
import { me } from "../session.js";
import { learn, signOff } from "../sign_on.js";
import { Dialog, Field, Form } from "../ui/form.js";
import { dateTime } from "../ui/format.js";
import { Loaded, useLoad } from "../ui/states.js";
import { toast } from "../ui/toast.js";
import { html, useState } from "../view.js";
import { PasswordAgain, useProof } from "./proof.js";

/** @typedef {{id: number, name: string, created_at: string, last_used_at: string | null, backed_up: boolean}} Passkey */

export function Passkeys() {
  const from = useLoad((signal) => get("auth/passkeys/", { page_size: 100 }, signal), []);
  const [asked, ask] = useState(/** @type {{dialog: any, passkey?: Passkey} | null} */ (null));
  const close = () => ask(null);
  const changed = () => { close(); from.reload(); void learn(); };
  return html`<p>A passkey lives in your phone, your computer or a security key. It opens your account with a fingerprint, a face or a PIN,
    and cannot be typed into a false page.</p>
    <${Loaded} from=${from}>${(data) => html`
      <ul class="plain" aria-label="Your passkeys">${data.results.map((passkey) => html`<li key=${passkey.id}>
        <strong>${passkey.name}</strong> <small>Added ${dateTime(passkey.created_at)}. ${passkey.last_used_at
          ? `Last used ${dateTime(passkey.last_used_at)}.` : "Never used."}</small>
        <div class="actions"><button aria-label=${`Rename ${passkey.name}`} onClick=${() =>
          ask({ dialog: Rename, passkey })}>Rename</button>
          <button aria-label=${`Remove ${passkey.name}`} onClick=${() => ask({ dialog: Remove, passkey })}>Remove</button></div></li>`)}
            </ul>
      ${data.count === 0 && html`<p>You have none yet.</p>`}
      ${asked && html`<${asked.dialog} passkey=${asked.passkey} last=${data.count === 1 && !me.value?.is_2fa_enabled} close=${close}
        changed=${changed} />`}`}
    </${Loaded}>
    ${offered() ? html`<div class="actions"><button class="main" onClick=${() => ask({ dialog: Add })}>Add a passkey</button></div>`
      : html`<p>This browser offers no passkeys at this address.</p>`}`;
}

/** @param {{close: () => void, changed: () => void}} props */
function Add({ close, changed }) {
  const proof = useProof();
  const send = proof.asking(async (values, password) => {
    const options = await post("auth/passkeys/registration-options/", password);
    return post("auth/passkeys/", { name: values.name, credential: await make(options) });
  });
  return html`<${Dialog} title="Add a passkey" close=${close}>
    <${Form} submit="Add" cancel=${close} send=${send} done=${() => { toast("The passkey is added."); changed(); }}>${(errors) => html`
      <${Field} label="Name" name="name" maxlength="100" hint="So that you know it again, for example “Work laptop”." errors=${errors} />
      <${PasswordAgain} proof=${proof} errors=${errors} />`}
    </${Form}>
  </${Dialog}>`;
}

/** @param {{passkey: Passkey, close: () => void, changed: () => void}} props */
const Rename = ({ passkey, close, changed }) => html`<${Dialog} title="Rename the passkey" close=${close}>
  <${Form} submit="Save" cancel=${close} send=${(values) => patch(`auth/passkeys/${passkey.id}/`, values)}
    done=${() => { toast("Saved."); changed(); }}>${(errors) => html`
    <${Field} label="Name" name="name" maxlength="100" value=${passkey.name} errors=${errors} />`}
  </${Form}>
</${Dialog}>`;

/** @param {{passkey: Passkey, last: boolean, close: () => void, changed: () => void}} props last is whether no second factor is left
 * without it */
function Remove({ passkey, last, close, changed }) {
  const proof = useProof();
  const send = proof.asking((values, password) => call("DELETE", `auth/passkeys/${passkey.id}/`, { body: password }));
  const done = () => { toast("The passkey is removed."); last ? void signOff("The passkey is removed. Sign in again.") : changed(); };
  return html`<${Dialog} title="Remove the passkey" close=${close}>
    <${Form} danger submit="Remove" cancel=${close} send=${send} done=${done}>${(errors) => html`
      <p>${passkey.name} will not open your account any more.${last
        && " It is your only second factor: without it the password alone does, and you are signed off everywhere."}</p>
      <${PasswordAgain} proof=${proof} errors=${errors} />`}
    </${Form}>
  </${Dialog}>`;
}
