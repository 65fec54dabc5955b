// Starts the console: one shell, and the view that the address names.
import { watchIdle } from "./idle.js";
import { keepLive } from "./live.js";
import { followPushes } from "./pushed.js";
import { resume } from "./sharing.js";
import { Shell } from "./shell.js";
import { html, render } from "./view.js";

/** @param {HTMLElement} root */
export async function start(root) {
  await resume();
  watchIdle();
  keepLive();
  followPushes();
  render(html`<${Shell} />`, root);
}
