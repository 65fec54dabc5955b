// The states of a part of the portal: loading, failed, loaded.
import { html } from "../view.js";
import { t } from "./words.js";

/** @param {{from: ReturnType<typeof import("../ui/states.js").useLoad>, children: (data: any) => any}} props */
export function Loading({ from, children }) {
  if (from.data !== null) {
    return children(from.data);
  }
  return from.problem ? html`<div role="alert"><p>${t("failed")}</p><button onClick=${from.reload}>${t("again")}</button></div>`
    : html`<p role="status">${t("loading")}</p>`;
}
