// Passkeys: passes the server's options to the browser, and the browser's credential to the server unchanged.
import { call, Problem } from "./api.js";
import { signInWithCredential } from "./sign_on.js";

/** Whether the browser supports passkeys for this page; an IP address has none. */
export const arePasskeysSupported = () => "PublicKeyCredential" in window && "parseRequestOptionsFromJSON" in PublicKeyCredential
  && !/^[\d.]+$|:/.test(location.hostname);

/** Translates the error of a browser's passkey dialog. @param {any} error */
function toProblem(error) {
  if (!(error instanceof DOMException)) {
    return error;
  }
  const words = { InvalidStateError: "This device already has a passkey for your account.",
    SecurityError: "Passkeys do not work at this address. Open the console at the server's host name." };
  return new Problem(0, { detail: words[error.name] ?? "No passkey was used. Try again when you are ready." });
}

/** Creates a passkey. @param {{publicKey: PublicKeyCredentialCreationOptionsJSON}} options */
export async function createPasskey({ publicKey }) {
  try {
    const made = await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(publicKey) });
    return /** @type {PublicKeyCredential} */ (made).toJSON();
  } catch (error) {
    throw toProblem(error);
  }
}

/** Signs in with a passkey, alone or as a second factor with the temporary token of an accepted password. @param {string} [token] */
export async function signInWithPasskey(token) {
  const step = token ? { temporary_token: token } : {};
  const { publicKey } = await call("POST", "auth/passkeys/authentication-options/", { body: step, open: true });
  let credential;
  try {
    const used = await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(publicKey) });
    credential = /** @type {PublicKeyCredential} */ (used).toJSON();
  } catch (error) {
    throw toProblem(error);
  }
  await signInWithCredential({ ...step, credential });
}
