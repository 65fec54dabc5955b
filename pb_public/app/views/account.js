// The user's account: profile, display settings, second factor, passkeys, password, sessions.
import { patch, post, send } from "../api.js";
import { roleNames } from "../permissions.js";
import { display, me, practice } from "../session.js";
import { loadProfile, signOut } from "../sign_on.js";
import { Dialog, Field, Form } from "../ui/form.js";
import { dateTime, humanize } from "../ui/format.js";
import { asProblem } from "../ui/states.js";
import { Facts } from "../ui/table.js";
import { toast } from "../ui/toast.js";
import { zoneLong } from "../ui/zone.js";
import { ZonePicker } from "../ui/zone_picker.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { Passkeys } from "./passkeys.js";
import { ReauthField, useReauth } from "./reauth.js";
import { Sessions } from "./sessions.js";
import { PasswordForm } from "./sign_in.js";
import { say } from "../language.js";

/** A patient has no role to see, no keys, and the zone of the record. */
const isPatient = () => me.value?.role === "patient";

export function Account() {
  const person = /** @type {any} */ (me.value);
  return html`<div class="heading"><h1>${say("Account")}</h1></div>
    <div class="grid">
      <section class="card"><h2>${say("You")}</h2>
        <${Facts} of=${[[say("Name"), `${person.first_name} ${person.last_name}`], [say("Email"), person.email],
          ...isPatient() ? [] : [["Role", roleNames[person.role] ?? humanize(person.role)]],
          [say("Last sign-in"), dateTime(person.last_login)]]} />
        <${Zone} person=${person} />
      </section>
      <section class="card"><h2>${say("Display")}</h2><${Display} /></section>
      <section class="card"><h2>${say("Second factor")}</h2><${SecondFactor} on=${person.is_2fa_enabled} /></section>
      ${!isPatient() && html`<section class="card"><h2>Passkeys</h2><${Passkeys} /></section>`}
      <section class="card"><h2>${say("Password")}</h2>
        <p>${say("Changing your password signs you out on all devices.")}</p>
        <${PasswordForm} done=${() => signOut("Password changed. Sign in with the new one.")} />
      </section>
      <section class="card"><h2>${say("Sessions")}</h2><${Sessions} /></section>
    </div>`;
}

/** @param {{person: any}} props */
const Zone = ({ person }) => html`<${Form} submit="Save" send=${(values) => patch("users/me/", values)}
  done=${() => { toast("Saved."); void loadProfile(); }}>${(errors) => html`
  ${!isPatient() && html`<${ZonePicker} value=${person.time_zone}
    hint=${`Leave blank to use the practice’s, ${zoneLong(practice.value.time_zone)}. Applies to times and quiet hours.`}
      errors=${errors} />`}
  <${Field} label="Phone" name="phone" kind="tel" value=${person.phone} errors=${errors} />`}
</${Form}>`;

/** Units and shortcuts of the user, on every device. */
const Display = () => html`<${Form} submit="Save display settings" send=${(values) => patch("auth/me/", values)}
  done=${() => { toast("Saved."); void loadProfile(); }}>${(errors) => html`
  <${Field} label="Weight" name="weight_unit" kind="select" value=${display.value.weight_unit} options=${[["kg", "Kilograms (kg)"],
    ["lb", "Pounds (lb)"]]} errors=${errors} />
  <${Field} label="Temperature" name="temperature_unit" kind="select" value=${display.value.temperature_unit}
    options=${[["C", "Celsius (°C)"], ["F", "Fahrenheit (°F)"]]}
    hint=${isPatient() ? undefined : "Also for thresholds."} errors=${errors} />
  ${!isPatient() && html`<${Field} label="Single-key shortcuts" name="single_keys" kind="checkbox" value=${display.value.single_keys}
    hint="For example J for the next patient; press ? for the list. Turn off if you use dictation." errors=${errors} />`}`}
</${Form}>`;

/** @param {{on: boolean}} props */
function SecondFactor({ on }) {
  const [open, setOpen] = useState(/** @type {"" | "enrol" | "disable" | "codes"} */ (""));
  const close = () => { setOpen(""); void loadProfile(); };
  return html`<p>${say(on ? "On: sign-in requires a code from your authenticator app."
    : "Off. A second factor protects patient data if your password is stolen.")}</p>
    <div class="actions">${on
      ? html`<button onClick=${() => setOpen("codes")}>${say("New backup codes")}</button><button
        onClick=${() => setOpen("disable")}>${say("Turn off")}</button>`
      : html`<button class="main" onClick=${() => setOpen("enrol")}>${say("Set up")}</button>`}</div>
    ${open === "enrol" && html`<${EnableDialog} close=${close} />`}
    ${open === "disable" && html`<${Disable} close=${close} />`}
    ${open === "codes" && html`<${NewCodes} close=${close} />`}`;
}

/** @param {{close: () => void}} props */
function EnableDialog({ close }) {
  const [setup, setSetup] = useState(/** @type {any} */ (null));
  const [isEnabled, setEnabled] = useState(false);
  const reauth = useReauth();
  const begin = reauth.wrap((values, password) => post("auth/2fa/setup/", password));
  useEffect(() => {
    begin({}).then(setSetup, (error) => {
      if (asProblem(error).code !== "reauthentication_required") {
        toast(asProblem(error).message, "problem");
        close();
      }
    });
  }, []);
  if (!setup) {
    return reauth.isRequired && html`<${Dialog} title="Set up the second factor" close=${close}>
      <p>${say("Enter your password again to continue.")}</p>
      <${Form} submit="Continue" cancel=${close} send=${begin} done=${setSetup}>${(errors) =>
        html`<${ReauthField} reauth=${reauth} errors=${errors} />`}</${Form}>
    </${Dialog}>`;
  }
  if (isEnabled) {
    return html`<${Dialog} title="Second factor is on" close=${close}><${Codes} codes=${setup.backup_codes} />
      <div class="actions"><button class="main" onClick=${close}>${say("I’ve saved them")}</button></div></${Dialog}>`;
  }
  return html`<${Dialog} title="Set up the second factor" close=${close}>
    <ol><li>${say("Scan this code with an authenticator app, or enter the key.")}</li><li>${say("Enter the six-digit code.")}</li></ol>
    <${QRCode} />
    <p>${say("Key:")} <code>${setup.secret.match(/.{4}/g).join(" ")}</code></p>
    <${Form} submit="Turn on" cancel=${close} send=${(values) =>
      post("auth/2fa/verify/", { totp_code: (values.totp_code ?? "").replaceAll(" ", "") })}
        done=${() => setEnabled(true)}>${(errors) => html`
      <${Field} label="Six-digit code" name="totp_code" inputmode="numeric" autocomplete="one-time-code" errors=${errors} />`}
    </${Form}>
  </${Dialog}>`;
}

/** The QR code is drawn on a canvas, because fetching it requires the bearer token, which an image URL cannot carry. */
function QRCode() {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  useEffect(() => {
    void send("GET", "auth/2fa/qr-code/").then((answer) => answer.blob()).then(createImageBitmap).then((image) => {
      const target = canvas.current;
      if (target) {
        target.width = image.width;
        target.height = image.height;
        target.getContext("2d")?.drawImage(image, 0, 0);
      }
    }).catch(() => toast("The QR code could not be loaded. Enter the key instead.", "problem"));
  }, []);
  return html`<canvas ref=${canvas} class="qr" role="img" aria-label=${say("QR code of the key below")}></canvas>`;
}

/** @param {{codes: string[]}} props */
const Codes = ({ codes }) => html`<p>${say("Each backup code signs you in once without the authenticator app.")}
  ${" "}${say("The codes are shown only once: print them or save them in a password manager.")}</p>
  <ul class="codes">${codes.map((code) => html`<li key=${code}><code>${code}</code></li>`)}</ul>`;

/** @param {Record<string, any>} values */
const passwordAndCode = (values) => ({ password: values.password ?? "", totp_code: (values.code ?? "").replaceAll(" ", "") });

/** @param {{errors: Record<string, string[]>}} props */
const PasswordAndCode = ({ errors }) => html`
  <${Field} label="Password" name="password" kind="password" autocomplete="current-password" errors=${errors} />
  <${Field} label="Authenticator code or backup code" name="code" autocomplete="one-time-code" errors=${{ code: errors.totp_code
    ?? errors.backup_code }} />`;

/** @param {{close: () => void}} props */
const Disable = ({ close }) => html`<${Dialog} title="Turn off the second factor" close=${close}>
  <${Form} danger submit="Turn off" cancel=${close} send=${(values) => post("auth/2fa/disable/", passwordAndCode(values))} done=${() =>
    signOut("Second factor turned off. Sign in again.")}>
    ${(errors) => html`<${PasswordAndCode} errors=${errors} />`}</${Form}>
</${Dialog}>`;

/** @param {{close: () => void}} props */
function NewCodes({ close }) {
  const [codes, setCodes] = useState(/** @type {string[] | null} */ (null));
  return html`<${Dialog} title="New backup codes" close=${close}>
    ${codes ? html`<${Codes} codes=${codes} /><div class="actions">
        <button class="main" onClick=${close}>${say("I’ve saved them")}</button></div>`
      : html`<p>${say("The old codes stop working.")}</p><${Form} submit="Create new codes" cancel=${close} send=${(values) =>
        post("auth/2fa/backup-codes/", passwordAndCode(values))} done=${(answer) => setCodes(answer.backup_codes)}>
        ${(errors) => html`<${PasswordAndCode} errors=${errors} />`}</${Form}>`}
  </${Dialog}>`;
}
