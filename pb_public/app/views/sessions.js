// The user's open sessions: see and end them one by one, or all.
import { call, get, post } from "../api.js";
import { signOut } from "../sign_on.js";
import { Dialog, Form } from "../ui/form.js";
import { dateTime } from "../ui/format.js";
import { Loaded, useLoad } from "../ui/states.js";
import { toast } from "../ui/toast.js";
import { html, useState } from "../view.js";
import { ReauthField, useReauth } from "./reauth.js";
import { say } from "../language.js";

/** @typedef {{id: string, started_at: string, last_used_at: string, address: string | null, user_agent: string | null,
 * current: boolean}} Session */

export function Sessions() {
  const from = useLoad((signal) => get("auth/sessions/", { page_size: 100 }, signal), []);
  const [ending, setEnding] = useState(/** @type {Session | null} */ (null));
  const [isEndingAll, setEndingAll] = useState(false);
  return html`<${Loaded} from=${from}>${(data) => html`
      <ul class="plain-list" aria-label=${say("Your sessions")}>${data.results.map((session) => html`<li key=${session.id}>
        <span><strong>${programOf(session)}</strong><br /><small>${session.current ? say("This session.") : session.address}
          ${" "}${say("Signed in {since}. Last used {last}.", { ...about(session),
            last: dateTime(session.last_used_at) })}</small></span>
        ${!session.current && html`<button aria-label=${say("End the session of {program}, signed in {since}", about(session))}
          onClick=${() => setEnding(session)}>${say("End")}</button>`}</li>`)}</ul>
      ${ending && html`<${End} session=${ending} close=${() => setEnding(null)} ended=${() => { setEnding(null); from.reload(); }} />`}`}
    </${Loaded}>
    <button class="danger" onClick=${() => setEndingAll(true)}>${say("Sign out everywhere")}</button>
    ${isEndingAll && html`<${EndAll} close=${() => setEndingAll(false)} />`}`;
}

/** @param {{close: () => void}} props */
function EndAll({ close }) {
  const reauth = useReauth();
  const send = reauth.wrap((_values, password) => post("auth/logout-all/", password));
  return html`<${Dialog} title="Sign out everywhere" close=${close}>
    <p>${say("You are signed out on all devices, including this one.")}</p>
    <${Form} danger submit="Sign out" cancel=${close} send=${send} done=${() =>
      signOut("You are signed out on all devices.")}>${(errors) => html`
      <${ReauthField} reauth=${reauth} errors=${errors} />`}
    </${Form}></${Dialog}>`;
}

/** @param {{session: Session, close: () => void, ended: () => void}} props */
function End({ session, close, ended }) {
  const reauth = useReauth();
  const send = reauth.wrap((_values, password) => call("DELETE", `auth/sessions/${session.id}/`, { body: password }));
  return html`<${Dialog} title="End this session" close=${close}>
    <p>${say("{program}, signed in {since}, is signed out at once.", about(session))}</p>
    <${Form} danger submit="End session" cancel=${close} send=${send} done=${() => {
      toast("Session ended."); ended(); }}>${(errors) => html`
      <${ReauthField} reauth=${reauth} errors=${errors} />`}
    </${Form}></${Dialog}>`;
}

const browsers = [["Edg", "Edge"], ["Firefox", "Firefox"], ["Chrome", "Chrome"], ["Safari", "Safari"]];
const systems = [["iPhone", "iPhone"], ["iPad", "iPad"], ["Android", "Android"], ["Windows", "Windows"],
  ["Mac OS", "Mac"], ["Linux", "Linux"]];

/** Names the browser and system of a session, or its program. @param {Session} session */
function programOf(session) {
  const agent = session.user_agent ?? "";
  const [browser, system] = [browsers, systems].map((names) => names.find(([mark]) => agent.includes(mark))?.[1]);
  return browser && system ? say("{browser} on {system}", { browser, system })
    : browser ?? (agent.split(" ")[0] || say("An unknown program"));
}

/** @param {Session} session */
const about = (session) => ({ program: programOf(session), since: dateTime(session.started_at) });
