// Starts the console: the shell and the view in the address.
import { followChartLinks } from "./chart_link.js";
import { followCriticals } from "./criticals.js";
import { watchIdle } from "./idle.js";
import { keepLive } from "./live.js";
import { followPushes } from "./push_navigation.js";
import { resume } from "./session_sharing.js";
import { Shell } from "./shell.js";
import { preferLaunch } from "./single_sign_on.js";
import { followTimer } from "./timer.js";
import { html, render } from "./view.js";
import { beginLanguage } from "./language.js";

/** @param {HTMLElement} root */
export async function start(root) {
  await Promise.all([resume(), beginLanguage()]);
  preferLaunch();
  followChartLinks();
  watchIdle();
  keepLive();
  followPushes();
  followCriticals();
  followTimer();
  render(html`<${Shell} />`, root);
}
