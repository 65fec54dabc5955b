// One's own account: who one is, password, second factor, passkeys.
import { patch, post, send } from "../api.js";
import { roleNames } from "../can.js";
import { display, me, practice } from "../session.js";
import { learn, signOff } from "../sign_on.js";
import { ActionButton, Dialog, Field, Form } from "../ui/form.js";
import { dateTime, words } from "../ui/format.js";
import { asProblem } from "../ui/states.js";
import { Facts } from "../ui/table.js";
import { toast } from "../ui/toast.js";
import { zoneLong } from "../ui/zone.js";
import { ZonePicker } from "../ui/zone_picker.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { Passkeys } from "./passkeys.js";
import { PasswordAgain, useProof } from "./proof.js";
import { PasswordForm } from "./sign_in.js";

export function Account() {
  const person = /** @type {any} */ (me.value);
  return html`<div class="heading"><h1>Account</h1></div>
    <div class="grid">
      <section class="card"><h2>You</h2>
        <${Facts} of=${[["Name", `${person.first_name} ${person.last_name}`], ["Email", person.email], ["Role", roleNames[person.role]
          ?? words(person.role)], ["Last sign-in", dateTime(person.last_login)]]} />
        <${Zone} person=${person} />
      </section>
      <section class="card"><h2>How things are shown</h2><${Display} /></section>
      <section class="card"><h2>Second factor</h2><${SecondFactor} on=${person.is_2fa_enabled} /></section>
      ${person.role !== "patient" && html`<section class="card"><h2>Passkeys</h2><${Passkeys} /></section>`}
      <section class="card"><h2>Password</h2>
        <p>Changing it signs you off everywhere.</p>
        <${PasswordForm} done=${() => signOff("Your password is changed. Sign in with the new one.")} />
      </section>
      <section class="card"><h2>Everywhere else</h2>
        <p>Ends every session of yours on all devices, this one included.</p>
        <${ActionButton} kind="danger" act=${() => post("auth/logout-all/")} done=${() =>
          signOff("You are signed off everywhere.")}>Sign off everywhere</${ActionButton}>
      </section>
    </div>`;
}

/** @param {{person: any}} props */
const Zone = ({ person }) => html`<${Form} submit="Save" send=${(values) => patch("users/me/", values)}
  done=${() => { toast("Saved."); void learn(); }}>${(errors) => html`
  <${ZonePicker} value=${person.time_zone}
    hint=${`Empty: the practice’s, ${zoneLong(practice.value.time_zone)}. Times and quiet hours follow it.`} errors=${errors} />
  <${Field} label="Phone" name="phone" kind="tel" value=${person.phone} errors=${errors} />`}
</${Form}>`;

/** Units and keys: for the person alone, on every device. */
const Display = () => html`<${Form} submit="Save how things are shown" send=${(values) => patch("auth/me/", values)}
  done=${() => { toast("Saved."); void learn(); }}>${(errors) => html`
  <${Field} label="Weight" name="weight_unit" kind="select" value=${display.value.weight_unit} options=${[["kg", "Kilograms (kg)"],
    ["lb", "Pounds (lb)"]]} errors=${errors} />
  <${Field} label="Temperature" name="temperature_unit" kind="select" value=${display.value.temperature_unit}
    options=${[["C", "Celsius (°C)"], ["F", "Fahrenheit (°F)"]]}
    hint="Bounds are shown and set in kg and °C, as they are held." errors=${errors} />
  <${Field} label="Single keys act" name="single_keys" kind="checkbox" value=${display.value.single_keys}
    hint="Such as J for the next patient; ? lists them. Switch them off if you dictate." errors=${errors} />`}
</${Form}>`;

/** @param {{on: boolean}} props */
function SecondFactor({ on }) {
  const [open, show] = useState(/** @type {"" | "enrol" | "disable" | "codes"} */ (""));
  const close = () => { show(""); void learn(); };
  return html`<p>${on ? "On: signing in asks for a code from your authenticator app."
    : "Off. With it a stolen password is not enough to read patients’ data."}</p>
    <div class="actions">${on
      ? html`<button onClick=${() => show("codes")}>New backup codes</button><button onClick=${() => show("disable")}>Switch off</button>`
      : html`<button class="main" onClick=${() => show("enrol")}>Set up</button>`}</div>
    ${open === "enrol" && html`<${Enrol} close=${close} />`}
    ${open === "disable" && html`<${Disable} close=${close} />`}
    ${open === "codes" && html`<${NewCodes} close=${close} />`}`;
}

/** @param {{close: () => void}} props */
function Enrol({ close }) {
  const [setup, keep] = useState(/** @type {any} */ (null));
  const [enabled, enable] = useState(false);
  const proof = useProof();
  const begin = proof.asking((values, password) => post("auth/2fa/setup/", password));
  useEffect(() => {
    begin({}).then(keep, (error) => {
      if (asProblem(error).code !== "reauthentication_required") {
        toast(asProblem(error).message, "problem");
        close();
      }
    });
  }, []);
  if (!setup) {
    return proof.asked && html`<${Dialog} title="Set up the second factor" close=${close}>
      <p>You signed in a while ago. Enter your password again.</p>
      <${Form} submit="Go on" cancel=${close} send=${begin} done=${keep}>${(errors) =>
        html`<${PasswordAgain} proof=${proof} errors=${errors} />`}</${Form}>
    </${Dialog}>`;
  }
  if (enabled) {
    return html`<${Dialog} title="Second factor is on" close=${close}><${Codes} codes=${setup.backup_codes} />
      <div class="actions"><button class="main" onClick=${close}>I have kept them</button></div></${Dialog}>`;
  }
  return html`<${Dialog} title="Set up the second factor" close=${close}>
    <ol><li>Scan this with an authenticator app, or type the key into it.</li><li>Enter the six digits it shows.</li></ol>
    <${QRCode} />
    <p>Key: <code>${setup.secret.match(/.{4}/g).join(" ")}</code></p>
    <${Form} submit="Switch on" cancel=${close} send=${(values) =>
      post("auth/2fa/verify/", { totp_code: (values.totp_code ?? "").replaceAll(" ", "") })} done=${() => enable(true)}>${(errors) => html`
      <${Field} label="Six digits" name="totp_code" inputmode="numeric" autocomplete="one-time-code" errors=${errors} />`}
    </${Form}>
  </${Dialog}>`;
}

/** The code is drawn on a canvas: it is fetched with the bearer token, which an image's address cannot carry. */
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
    }).catch(() => toast("The picture could not be loaded. Type the key instead.", "problem"));
  }, []);
  return html`<canvas ref=${canvas} class="qr" role="img" aria-label="QR code of the key below"></canvas>`;
}

/** @param {{codes: string[]}} props */
const Codes = ({ codes }) => html`<p>Each of these backup codes opens your account once when the app is not at hand. They are shown only
  now: print them or keep them in a password manager.</p>
  <ul class="codes">${codes.map((code) => html`<li key=${code}><code>${code}</code></li>`)}</ul>`;

/** @param {Record<string, any>} values */
const proofOf = (values) => ({ password: values.password ?? "", totp_code: (values.code ?? "").replaceAll(" ", "") });

/** @param {{errors: Record<string, string[]>}} props */
const Proof = ({ errors }) => html`
  <${Field} label="Password" name="password" kind="password" autocomplete="current-password" errors=${errors} />
  <${Field} label="Code from the app, or a backup code" name="code" autocomplete="one-time-code" errors=${{ code: errors.totp_code
    ?? errors.backup_code }} />`;

/** @param {{close: () => void}} props */
const Disable = ({ close }) => html`<${Dialog} title="Switch off the second factor" close=${close}>
  <${Form} danger submit="Switch off" cancel=${close} send=${(values) => post("auth/2fa/disable/", proofOf(values))} done=${() =>
    signOff("The second factor is off. Sign in again.")}>
    ${(errors) => html`<${Proof} errors=${errors} />`}</${Form}>
</${Dialog}>`;

/** @param {{close: () => void}} props */
function NewCodes({ close }) {
  const [codes, keep] = useState(/** @type {string[] | null} */ (null));
  return html`<${Dialog} title="New backup codes" close=${close}>
    ${codes ? html`<${Codes} codes=${codes} /><div class="actions"><button class="main" onClick=${close}>I have kept them</button></div>`
      : html`<p>The old ones stop working.</p><${Form} submit="Make new codes" cancel=${close} send=${(values) =>
        post("auth/2fa/backup-codes/", proofOf(values))} done=${(answer) => keep(answer.backup_codes)}>
        ${(errors) => html`<${Proof} errors=${errors} />`}</${Form}>`}
  </${Dialog}>`;
}
