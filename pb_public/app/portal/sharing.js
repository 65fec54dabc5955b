// Who looked at the patient's data, and the people who help. Only the patient's own account sees these.
import { get, post, remove } from "../api.js";
import { valuesOf } from "../ui/form.js";
import { relationships } from "./relationships.js";
import { useLoad } from "../ui/states.js";
import { me } from "../session.js";
import { html, useState } from "../view.js";
import { Loading } from "./loading.js";
import { t, tCode, tDay, tTime } from "./words.js";

/** Who acted, in words. @param {any} entry of the access log */
const whoIs = (entry) => (entry.actor_email === me.value?.email ? t("you") : entry.actor_email ?? (entry.actor_role
  ? t("staff", { role: tCode(entry.actor_role) }) : t("system")));

/** Each person once a day. @param {{id: string, zone: string | undefined}} props */
export function WhoLooked({ id, zone }) {
  const since = new Date(Date.now() - 30 * 86_400_000).toISOString();
  const list = useLoad((signal) => get(`patients/${id}/access-log/`, { date_from: since, page_size: 100 }, signal), [id]);
  return html`<section class="card" aria-labelledby="looked"><h2 id="looked">${t("looked")}</h2><${Loading} from=${list}>${(data) => {
    const seen = new Map();
    for (const entry of data.results) {
      const key = `${whoIs(entry)} ${entry.recorded_at.slice(0, 10)}`;
      seen.has(key) || seen.set(key, entry);
    }
    return seen.size === 0 ? html`<p>${t("lookedNone")}</p>` : html`<ul class="plain-list">${[...seen].map(([key, entry]) =>
      html`<li key=${key}><span>${whoIs(entry)}</span><small>${tTime(entry.recorded_at, zone, "day")}</small></li>`)}</ul>`;
  }}</${Loading}></section>`;
}

/** @param {{id: string}} props */
export function Caregivers({ id }) {
  const list = useLoad((signal) => get(`patients/${id}/caregivers/`, {}, signal), [id]);
  const [isAdding, setAdding] = useState(false);
  const [message, setMessage] = useState("");
  const end = async (/** @type {number} */ number) => {
    try {
      await remove(`patients/${id}/caregivers/${number}/`);
      setMessage(t("ended"));
    } catch {
      setMessage(t("notSaved"));
    }
    list.reload();
  };
  const added = (/** @type {any} */ one) => { setAdding(false); setMessage(t("invited", { email: one.email })); list.reload(); };
  return html`<section class="card" aria-labelledby="caregivers"><h2 id="caregivers">${t("caregivers")}</h2><p>${t("caregiversHelp")}</p>
    <${Loading} from=${list}>${(data) => (data.results.length === 0 ? html`<p>${t("caregiversNone")}</p>`
      : html`<ul class="plain-list">${data.results.map((one) => html`<li key=${one.id}>
        <span><strong>${one.email}</strong><br />${tCode(one.relationship)}, ${t(one.scope === "enter" ? "canEnter" : "canRead")}${one.until
          ? `, ${t("untilDay", { day: tDay(one.until) })}` : ""}</span>
        <button aria-label=${t("end", { name: one.email })} onClick=${() => end(one.id)}>×</button></li>`)}</ul>`)}</${Loading}>
    <p role="status">${message}</p>
    ${isAdding ? html`<${AddCaregiver} id=${id} done=${added} cancel=${() => setAdding(false)} />`
      : html`<button onClick=${() => { setMessage(""); setAdding(true); }}>${t("add")}</button>`}
  </section>`;
}

/** @param {{id: string, done: (added: any) => void, cancel: () => void}} props */
function AddCaregiver({ id, done, cancel }) {
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    setBusy(true);
    try {
      done(await post(`patients/${id}/caregivers/`, valuesOf(event.currentTarget)));
    } catch {
      setProblem(t("notAdded"));
      setBusy(false);
    }
  };
  return html`<form onSubmit=${submit} novalidate>
    <div class="field"><label for="portal-email">${t("email")}</label>
      <input id="portal-email" name="email" type="email" autocomplete="off" /></div>
    <div class="field"><label for="portal-relationship">${t("relationship")}</label><select id="portal-relationship" name="relationship">
      ${relationships.map((one) => html`<option key=${one} value=${one}>${tCode(one)}</option>`)}</select></div>
    <div class="field"><label for="portal-scope">${t("scope")}</label><select id="portal-scope" name="scope">
      <option value="read">${t("no")}</option><option value="enter">${t("yes")}</option></select></div>
    <div class="field"><label for="portal-until">${t("until")}</label><input id="portal-until" name="until" type="date" /></div>
    <p role="alert" class=${problem ? "notice problem" : ""}>${problem}</p>
    <div class="actions"><button type="button" class="quiet" onClick=${cancel}>${t("cancel")}</button>
      <button class="main" disabled=${isBusy}>${t(isBusy ? "saving" : "add")}</button></div>
  </form>`;
}
