// Passkeys: from the service's options to the browser's dialog, and back. What the browser makes is passed on as it is.
import { call, Problem } from "./api.js";
import { beginWithPasskey } from "./sign_on.js";

/** Whether this browser has passkeys for this page: none has them for a bare address. */
export const offered = () => "PublicKeyCredential" in window && "parseRequestOptionsFromJSON" in PublicKeyCredential
  && !/^[\d.]+$|:/.test(location.hostname);

/** Says in our words what a browser's dialog ended with. @param {any} error */
function said(error) {
  if (!(error instanceof DOMException)) {
    return error;
  }
  const words = { InvalidStateError: "This device holds a passkey of yours already.",
    SecurityError: "Passkeys do not work at this address. Open the console under the service's own name." };
  return new Problem(0, { detail: words[error.name] ?? "No passkey was used. Try again when you are ready." });
}

/** Has the browser make a passkey. @param {{publicKey: PublicKeyCredentialCreationOptionsJSON}} options */
export async function make({ publicKey }) {
  try {
    const made = await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(publicKey) });
    return /** @type {PublicKeyCredential} */ (made).toJSON();
  } catch (error) {
    throw said(error);
  }
}

/** Signs in with a passkey: alone, or with the temporary token of a right password. @param {string} [token] */
export async function signInWithPasskey(token) {
  const step = token ? { temporary_token: token } : {};
  const { publicKey } = await call("POST", "auth/passkeys/authentication-options/", { body: step, open: true });
  let credential;
  try {
    const used = await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(publicKey) });
    credential = /** @type {PublicKeyCredential} */ (used).toJSON();
  } catch (error) {
    throw said(error);
  }
  await beginWithPasskey({ ...step, credential });
}
