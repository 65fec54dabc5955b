// The user's passkeys: add, rename, remove.
import { call, get, patch, post } from "../api.js";
import { createPasskey, arePasskeysSupported } from "../passkeys.js";
import { me } from "../session.js";
import { loadProfile, signOut } from "../sign_on.js";
import { Dialog, Field, Form } from "../ui/form.js";
import { dateTime } from "../ui/format.js";
import { Loaded, useLoad } from "../ui/states.js";
import { toast } from "../ui/toast.js";
import { html, useState } from "../view.js";
import { ReauthField, useReauth } from "./reauth.js";

/** @typedef {{id: number, name: string, created_at: string, last_used_at: string | null, backed_up: boolean}} Passkey */

export function Passkeys() {
  const from = useLoad((signal) => get("auth/passkeys/", { page_size: 100 }, signal), []);
  const [dialog, setDialog] = useState(/** @type {{dialog: any, passkey?: Passkey} | null} */ (null));
  const close = () => setDialog(null);
  const changed = () => { close(); from.reload(); void loadProfile(); };
  return html`<p>A passkey is stored on your phone, computer or security key. You sign in with a fingerprint, face or PIN,
    and it protects you from phishing.</p>
    <${Loaded} from=${from}>${(data) => html`
      <ul class="plain" aria-label="Your passkeys">${data.results.map((passkey) => html`<li key=${passkey.id}>
        <strong>${passkey.name}</strong> <small>Added ${dateTime(passkey.created_at)}. ${passkey.last_used_at
          ? `Last used ${dateTime(passkey.last_used_at)}.` : "Never used."}</small>
        <div class="actions"><button aria-label=${`Rename ${passkey.name}`} onClick=${() =>
          setDialog({ dialog: Rename, passkey })}>Rename</button>
          <button aria-label=${`Remove ${passkey.name}`}
            onClick=${() => setDialog({ dialog: Remove, passkey })}>Remove</button></div></li>`)}
            </ul>
      ${data.count === 0 && html`<p>No passkeys yet.</p>`}
      ${dialog && html`<${dialog.dialog} passkey=${dialog.passkey} last=${data.count === 1 && !me.value?.is_2fa_enabled} close=${close}
        changed=${changed} />`}`}
    </${Loaded}>
    ${arePasskeysSupported() ? html`<div class="actions"><button class="main"
      onClick=${() => setDialog({ dialog: Add })}>Add a passkey</button></div>`
      : html`<p>This browser does not support passkeys at this address.</p>`}`;
}

/** @param {{close: () => void, changed: () => void}} props */
function Add({ close, changed }) {
  const reauth = useReauth();
  const send = reauth.wrap(async (values, password) => {
    const options = await post("auth/passkeys/registration-options/", password);
    return post("auth/passkeys/", { name: values.name, credential: await createPasskey(options) });
  });
  return html`<${Dialog} title="Add a passkey" close=${close}>
    <${Form} submit="Add" cancel=${close} send=${send} done=${() => { toast("Passkey added."); changed(); }}>${(errors) => html`
      <${Field} label="Name" name="name" maxlength="100" hint="To recognize it later, for example “Work laptop”." errors=${errors} />
      <${ReauthField} reauth=${reauth} errors=${errors} />`}
    </${Form}>
  </${Dialog}>`;
}

/** @param {{passkey: Passkey, close: () => void, changed: () => void}} props */
const Rename = ({ passkey, close, changed }) => html`<${Dialog} title="Rename passkey" close=${close}>
  <${Form} submit="Save" cancel=${close} send=${(values) => patch(`auth/passkeys/${passkey.id}/`, values)}
    done=${() => { toast("Saved."); changed(); }}>${(errors) => html`
    <${Field} label="Name" name="name" maxlength="100" value=${passkey.name} errors=${errors} />`}
  </${Form}>
</${Dialog}>`;

/** @param {{passkey: Passkey, last: boolean, close: () => void, changed: () => void}} props last: it is the only second factor */
function Remove({ passkey, last, close, changed }) {
  const reauth = useReauth();
  const send = reauth.wrap((values, password) => call("DELETE", `auth/passkeys/${passkey.id}/`, { body: password }));
  const done = () => { toast("Passkey removed."); last ? void signOut("Passkey removed. Sign in again.") : changed(); };
  return html`<${Dialog} title="Remove passkey" close=${close}>
    <${Form} danger submit="Remove" cancel=${close} send=${send} done=${done}>${(errors) => html`
      <p>${passkey.name} can no longer be used to sign in.${last
        && " It is your only second factor: sign-in will require only your password, and you will be signed out on all devices."}</p>
      <${ReauthField} reauth=${reauth} errors=${errors} />`}
    </${Form}>
  </${Dialog}>`;
}
