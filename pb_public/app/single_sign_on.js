// Sign-in with the practice's identity provider, and launches from the EMR. The browser returns with a code behind the #, which no server
// receives. The code is removed from the address and the history immediately; it works once, with the cookie of the same browser.
import { call } from "./api.js";
import { Problem, problemOf, request } from "./request.js";
import { clearPlace, go } from "./router.js";
import { end, me } from "./session.js";
import { startSession } from "./sign_on.js";
import { toast } from "./ui/toast.js";
import { effect, signal } from "./view.js";

/** The address that redirects to the provider. */
export const loginURL = "/api/v1/auth/oidc/login/";

/** @typedef {{patient_id: string | null, patient_problem: string | null}} LaunchedPatient */

/** @returns {{isLaunch: boolean, values: Record<string, string>} | null} the parameters of the redirect to this page */
function readRedirect() {
  const [, kind, query] = /^#\/(sign-on|launch)\?(.*)$/.exec(location.hash) ?? [];
  if (query === undefined) {
    return null;
  }
  clearPlace({ isFinal: true });
  return { isLaunch: kind === "launch", values: Object.fromEntries(new URLSearchParams(query)) };
}

/** The parameters with which this page was opened; used once. */
let redirected = readRedirect();

/** Leaves the session of another tab for a launch: its user may be another person. */
export const preferLaunch = () => { redirected?.isLaunch && end("", false); };

/** What a launch leaves for after the sign-in: a ticket that links the accounts, or the patient.
 *  @type {{ticket?: string, patient?: LaunchedPatient} | null} */
let pending = null;

/** Completes the sign-in after the redirect of the provider or the EMR. */
export async function completeSignIn() {
  if (!redirected) {
    return;
  }
  const { isLaunch, values } = redirected;
  redirected = null;
  if (values.problem) {
    throw launchProblem(values);
  }
  await startSession(async () => {
    const answer = await request("GET", isLaunch ? "auth/smart/callback/" : "auth/oidc/callback/", { query: values,
      headers: { Accept: "application/json" }, credentials: "same-origin" });
    const body = await answer.clone().json().catch(() => ({}));
    pending = isLaunch ? { ticket: body.ticket, patient: body.launched_patient } : null;
    if (!answer.ok) {
      throw await problemOf(answer);
    }
    return body;
  });
}

const launchProblems = {
  unknown_issuer: "This EMR is not among those that may open Vigil. An administrator can add its address to the settings.",
  launch_required: "Open Vigil from a patient in the EMR.",
  launch_failed: "The EMR does not answer as expected. Open Vigil from the EMR again, or sign in here.",
  smart_not_configured: "Vigil is not set up to be opened from an EMR. You can sign in here.",
  cookie_blocked: "This browser stores no cookies for Vigil within the EMR's window.",
};

/** @param {Record<string, string>} values */
function launchProblem({ problem, iss, launch }) {
  const detail = launchProblems[problem] ?? "Vigil could not be opened from the EMR. Try again, or sign in here.";
  const stopped = new Problem(0, { code: problem, detail });
  return Object.assign(stopped, iss && launch ? { newWindow: `/launch?${new URLSearchParams({ iss, launch })}` } : {});
}

const patientProblems = {
  no_patient: "The EMR named no patient. Choose one here.",
  other_system: "This EMR's patients are not linked to Vigil's. Find the patient by name.",
  unknown_patient: "This patient is not in Vigil, or not linked to the EMR's record. Find the patient by name, or enroll.",
};

effect(() => {
  if (me.value && pending) {
    const { ticket, patient } = pending;
    pending = null;
    setTimeout(() => void afterLaunch(ticket, patient)); // after the shell has restored its place
  }
});

/** Links the accounts if necessary, and opens the patient. @param {string} [ticket] @param {LaunchedPatient} [patient] */
async function afterLaunch(ticket, patient) {
  try {
    const opened = ticket ? await call("POST", "auth/smart/link/", { body: { ticket }, credentials: "same-origin" }) : patient;
    if (ticket) {
      toast("Your accounts are linked. From now on the EMR signs you in.");
    }
    if (opened?.patient_id) {
      go("patient", { id: opened.patient_id });
    } else if (opened?.patient_problem) {
      toast(patientProblems[opened.patient_problem], "problem");
    }
  } catch (error) {
    toast(/** @type {Error} */ (error).message, "problem");
  }
}

/** What the sign-in page shows of the practice. */
export const offer = signal({ offered: false, practice_name: "" });

export async function loadOffer() {
  const answer = await request("GET", "auth/oidc/");
  if (answer.ok) {
    offer.value = await answer.json();
  }
}
