// Sign-in: password, second factor, passkey, locked account, password reset, and the required change of a temporary password.
import { call, Problem } from "../api.js";
import { arePasskeysSupported, signInWithPasskey } from "../passkeys.js";
import { Field, Form } from "../ui/form.js";
import { asProblem } from "../ui/states.js";
import { endReason } from "../session.js";
import { signIn, signInWithSecondFactor, loadProfile, signOut } from "../sign_on.js";
import { LanguageChoice } from "../ui/language_choice.js";
import { html, logo, useState } from "../view.js";
import { offer } from "../single_sign_on.js";
import { SingleSignOn } from "./single_sign_on.js";
import { say, sayProblem } from "../language.js";

export function SignIn() {
  const [step, setStep] = useState("password"); // password, code, reset, sent
  const [credentials, setCredentials] = useState({ email: "", password: "", token: "", methods: [] });
  const steps = { password: Password, code: Code, reset: PasswordReset, sent: Sent };
  const Step = steps[step];
  return html`<main class="door" id="main">
    <div class="door-head"><img src=${logo} alt="" width="40" height="40" /><${LanguageChoice} /></div>
    <h1>${offer.value.practice_name || "Vigil"}</h1>
    ${endReason.value && html`<p class="notice" role="status">${say(endReason.value)}</p>`}
    <${Step} proof=${credentials} keep=${setCredentials} show=${setStep} />
  </main>`;
}

/** @typedef {{proof: {email: string, password: string, token: string, methods: string[]}, keep: (proof: any) => void,
 * show: (step: string) => void}} StepProps */

/** @param {Problem} problem */
function withLockTime(problem) {
  if (problem.code === "account_locked" && problem.lockedUntil) {
    const left = Math.max(1,
      Math.ceil((Date.parse(problem.lockedUntil) - Date.now()) / 60_000)); // minutes, because the user's zone is not loaded yet
    return new Problem(problem.status, { detail: say(left === 1 ? "This account is locked for one more minute. {next}"
      : "This account is locked for {left} more minutes. {next}", { left,
      next: say("Each further attempt restarts the wait. An administrator can unlock the account.") }) });
  }
  return problem;
}

/** @param {StepProps} props */
function Password({ proof, keep, show }) {
  const send = async (values) => {
    const given = { email: values.email ?? "", password: values.password ?? "" };
    try {
      await signIn(given);
    } catch (error) {
      if (error instanceof Problem && error.code === "totp_required") {
        keep({ ...given, token: error.temporaryToken, methods: error.methods });
        return show("code");
      }
      throw error instanceof Problem ? withLockTime(error) : error;
    }
  };
  /** @param {Problem} step of a second factor */
  const onSecondFactor = (step) => {
    keep({ email: "", password: "", token: step.temporaryToken, methods: step.methods });
    show("code");
  };
  return html`<${SingleSignOn} onSecondFactor=${onSecondFactor} />
    <${Form} submit="Sign in" send=${send}>${(errors) => html`
      <${Field} label="Email" name="email" kind="email" autocomplete="username" value=${proof.email} errors=${errors}
        aria-required="true" autofocus />
      <${Field} label="Password" name="password" kind="password" autocomplete="current-password" errors=${errors} aria-required="true" />`}
    </${Form}>
    <${UsePasskey} />
    <button class="link" onClick=${() => show("reset")}>${say("Lost your password?")}</button>`;
}

/** Signs in with a passkey, alone or as the second factor for the token. @param {{token?: string}} props */
function UsePasskey({ token }) {
  const [problem, setProblem] = useState(/** @type {Problem | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  if (!arePasskeysSupported()) {
    return null;
  }
  const press = async () => {
    setBusy(true);
    setProblem(null);
    try {
      await signInWithPasskey(token);
    } catch (error) {
      setProblem(withLockTime(asProblem(error)));
      setBusy(false);
    }
  };
  return html`${problem && html`<p class="notice problem" role="alert">${sayProblem(problem.message)}</p>`}
    <p><button type="button" disabled=${isBusy} onClick=${press}>${say(isBusy ? "One moment" : "Use a passkey")}</button></p>`;
}

/** @param {StepProps} props */
function Code({ proof, keep, show }) {
  const send = async (values) => {
    const code = (values.code ?? "").replaceAll(" ", "");
    const given = /^\d{6}$/.test(code) ? { totp_code: code } : { backup_code: code };
    try {
      await (proof.email ? signIn({ email: proof.email, password: proof.password, ...given })
        : signInWithSecondFactor({ temporary_token: proof.token, ...given }));
    } catch (error) {
      throw error instanceof Problem ? withLockTime(error) : error;
    }
  };
  const back = () => { keep({ ...proof, password: "", token: "" }); show("password"); };
  if (!proof.methods.includes("totp")) {
    return html`<p>${say("Password accepted. Now use your passkey.")}</p>
      ${arePasskeysSupported() ? html`<${UsePasskey} token=${proof.token} />`
        : html`<p class="notice problem"
          role="alert">${say("This browser does not support passkeys at this address.")}
          ${" "}${say("An administrator can turn off your second factor.")}</p>`}
      <button class="link" onClick=${back}>${say("Back to password")}</button>`;
  }
  return html`<p>${say("Enter the six-digit code from your authenticator app, or a backup code.")}</p>
    ${proof.methods.includes("passkey") && html`<${UsePasskey} token=${proof.token} />`}
    <${Form} submit="Sign in" send=${send} cancel=${back}>${(errors) => html`
      <${Field} label="Code" name="code" autocomplete="one-time-code" inputmode="text" spellcheck=${false} errors=${errors} autofocus />`}
    </${Form}>`;
}

/** @param {StepProps} props */
function PasswordReset({ proof, show }) {
  return html`<p>${say("If there is an account for this address, a link to set a new password will be sent. It is valid for one hour.")}</p>
    <${Form} submit="Send link" cancel=${() => show("password")} done=${() => show("sent")}
      send=${(values) => call("POST", "auth/password-reset/", { body: { email: values.email ?? "" }, open: true })}>${(errors) => html`
      <${Field} label="Email" name="email" kind="email" autocomplete="username" value=${proof.email} errors=${errors} />`}
    </${Form}>`;
}

/** @param {StepProps} props */
const Sent = ({ show }) => html`<p role="status">${say("If there is an account for this address, the link has been sent.")}</p>
  <button class="main" onClick=${() => show("password")}>${say("Back to sign-in")}</button>`;

/** The page that requires a change of the temporary password. */
export function NewPassword() {
  return html`<main class="door" id="main">
    <h1>${say("Choose a new password")}</h1>
    <p>${say("You signed in with a temporary password. Use at least 12 characters.")}</p>
    <${PasswordForm} done=${loadProfile} cancel=${() => signOut()} />
  </main>`;
}

/** @param {{done: () => void, cancel?: () => void}} props */
export const PasswordForm = ({ done, cancel }) => html`<${Form} submit="Change password" cancel=${cancel} done=${done}
    send=${(values) => call("POST", "auth/password/change/", { body: values })}>${(errors) => html`
    <${Field} label="Current password" name="old_password" kind="password" autocomplete="current-password" errors=${errors} />
    <${Field} label="New password" name="new_password" kind="password" autocomplete="new-password" errors=${errors} />
    <${Field} label="Confirm password" name="new_password_confirm" kind="password" autocomplete="new-password" errors=${errors} />`}
  </${Form}>`;
