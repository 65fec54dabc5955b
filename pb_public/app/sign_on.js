// Beginning and ending a session at the service.
import { call } from "./api.js";
import { end, farewell, hold, me, refreshToken } from "./session.js";

/** Signs in; a second factor that is missing or wrong is a Problem with its code. @param {{email: string, password: string, totp_code?: string, backup_code?: string}} proof */
export const begin = (proof) => open("auth/login/", proof);

/** Signs in with what the browser made of a passkey. @param {{temporary_token?: string, credential: any}} use */
export const beginWithPasskey = (use) => open("auth/passkeys/authenticate/", use);

/** @param {string} path @param {any} body */
async function open(path, body) {
  hold(await call("POST", path, { body, open: true }));
  try {
    await learn();
  } catch (error) {
    hold(null);
    throw error;
  }
  farewell.value = "";
}

/** Reads the profile anew. */
export async function learn() {
  me.value = await call("GET", "auth/profile/");
}

/** Signs off here and at the service. */
export async function signOff(reason = "You have signed off.") {
  const refresh = refreshToken();
  try {
    await call("POST", "auth/logout/", { body: { refresh } });
  } catch {
    // The token runs out by itself; signing off here must not wait for the network.
  }
  end(reason);
}
