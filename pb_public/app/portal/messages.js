// The patient's messages with the care team. Only the patient's own account sees them.
import { get, post } from "../api.js";
import { valuesOf } from "../ui/form.js";
import { go } from "../router.js";
import { useLoad } from "../ui/states.js";
import { html, useState } from "../view.js";
import { Loading } from "./loading.js";
import { t, tTime } from "./words.js";

const who = (/** @type {any} */ m) => t(m.direction === "in" ? "you" : m.author === "staff" ? "team" : "practice");

/** A message of the team that the patient has not answered. @param {{id: string, zone: string | undefined, turn: number}} props */
export function Unanswered({ id, zone, turn }) {
  const [newest] = useLoad((signal) => get(`patients/${id}/messages/`, { page_size: 1 }, signal), [id, turn]).data?.results ?? [];
  const day = newest && tTime(newest.created_at, zone, "day");
  return newest?.author === "staff" && html`<section class="card"><p>${t("wrote", { day })}</p>
    <button onClick=${() => go("my-health", {}, { tab: "messages" })}>${t("reply")}</button></section>`;
}

/** @param {{id: string, zone: string | undefined, turn: number}} props turn counts news of the patient */
export function TeamMessages({ id, zone, turn }) {
  const list = useLoad((signal) => get(`patients/${id}/messages/`, { page_size: 50 }, signal), [id, turn]);
  const [message, setMessage] = useState("");
  const [isBusy, setBusy] = useState(false);
  const send = async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = event.currentTarget;
    const { text } = valuesOf(form);
    if (!text) {
      return setMessage(t("writeFirst"));
    }
    setBusy(true);
    try {
      await post(`patients/${id}/messages/`, { text });
      form.reset();
      setMessage(t("messageSent"));
      list.reload();
    } catch {
      setMessage(t("notSaved"));
    } finally {
      setBusy(false);
    }
  };
  return html`<section class="card" aria-label=${t("messages")}>
    <p>${t("messagesHelp")}</p>
    <form onSubmit=${send} novalidate><div class="field"><label for="portal-text">${t("yourMessage")}</label>
      <textarea id="portal-text" name="text" rows="3" maxlength="4000"></textarea></div>
      <p role="status">${message}</p>
      <button class="main" disabled=${isBusy}>${t(isBusy ? "saving" : "send")}</button></form>
    <${Loading} from=${list}>${(data) => html`<ol class="thread">${data.results.map((m) =>
      html`<li key=${m.id} class=${m.direction === "in" ? "to" : "from"}><p class="words">${m.text}</p>
        <small>${who(m)} · ${tTime(m.created_at, zone)}</small></li>`)}</ol>`}</${Loading}>
  </section>`;
}
