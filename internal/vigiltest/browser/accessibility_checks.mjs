// Checks of every view: axe, in both color schemes, on a desktop, at 200 % and on a phone; no sideways scrolling; and by
// keyboard, every control is reachable, has visible focus and an accessible name.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// A laptop, the same enlarged to 200 %, a phone.
export const sizes = [[1280, 800], [640, 400], [390, 844]];

const asked = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
// The dark scheme differs in colors only. Contrast is axe's slowest check, and the colors at 200 % are those of the phone.
const ofColours = ["color-contrast", "link-in-text-block"];
const enlarged = sizes[1][0];
// Whoever speaks to the computer says what is visible (WCAG 2.5.3). axe counts this rule as experimental.
const spoken = "label-content-name-mismatch";

// prepare makes the page record click handlers and the targets of Tab; call it before the page is opened.
export async function prepare(page) {
  await page.addInitScript(axe);
  await page.addInitScript(watchOver);
}

// Runs in the page.
function watchOver() {
  const native = "a, button, input, select, textarea";
  const usable = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex], [contenteditable]";
  const keyed = "[data-key], [data-id]";
  const clicked = new WeakSet();
  const listen = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (type, ...rest) {
    if (type === "click" && this instanceof Element) {
      clicked.add(this);
    }
    return listen.call(this, type, ...rest);
  };
  let visits = new Map(); // focused elements, and what is wrong with each

  const shown = (node) => node.checkVisibility({ visibilityProperty: true }) && node.getClientRects().length > 0;
  const live = (node) => shown(node) && !node.disabled && !node.closest("[inert]") && getComputedStyle(node).pointerEvents !== "none";
  const told = (node) => node.cloneNode(false).outerHTML.slice(0, 160) + node.textContent.trim().slice(0, 40);
  // Buttons in a focusable row are for the pointer: the row has keys, and its panel has the same buttons.
  const quick = (node) => node.tabIndex < 0 && node.parentElement.closest(keyed)?.hasAttribute("tabindex");
  // The rows of a list are one tab stop; arrows, J and K move within it.
  const listOf = (node) => node.closest(keyed)?.closest("table, ol, ul");
  const rowed = (node) => node.matches(keyed) && node.hasAttribute("tabindex")
    && [...visits.keys()].some((one) => one !== node && listOf(one) === listOf(node));
  // Tab reaches the selected tab or option and one radio of a group; arrows reach the others.
  const byArrows = (node) => node.tabIndex < 0 && node.closest("[role=tablist], [role=listbox], [role=grid], [role=menu]");
  const another = (node) => node.type === "radio" && !node.checked
    && [...document.getElementsByName(node.name)].some((one) => one.checked || one !== node);
  const forCode = (node) => node.getAttribute("tabindex") === "-1" && !node.matches(native); // focused by code, such as the target of a link within the page
  const all = (within) => [...within.querySelectorAll("*")].filter((node) => (node.matches(usable) || clicked.has(node)) && live(node));
  const dialog = () => document.querySelector("dialog[open]");

  // Whether the focus is visible: the element or its proxy has an outline and is not covered.
  function judge(node) {
    const ring = [node, node.parentElement, node.closest("label, .file, dialog")].some((one) => {
      const { outlineStyle, outlineWidth } = one ? getComputedStyle(one) : {};
      return one && outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
    });
    const whole = node.getBoundingClientRect();
    const [left, top] = [Math.max(whole.left, 0), Math.max(whole.top, 0)];
    const [width, height] = [Math.min(whole.right, innerWidth) - left, Math.min(whole.bottom, innerHeight) - top];
    const spots = [[.5, .5], [.1, .5], [.9, .5], [.5, .15], [.5, .85]];
    const hits = spots.map(([x, y]) => document.elementFromPoint(left + width * x, top + height * y));
    const seen = hits.some((hit) => hit && (node.contains(hit) || hit.closest("label")?.control === node
      || (hit.contains(node) && !hit.matches("html, body, #console"))));
    const behind = hits[0]?.closest("[class], [id]")?.cloneNode(false).outerHTML.slice(0, 80);
    return [!ring && "no ring", !seen && `out of sight at ${[left, top].map(Math.round)}, behind ${behind}`].filter(Boolean).join(", ");
  }
  addEventListener("keydown", (event) => {
    const node = document.activeElement;
    if (event.key === "Tab" && node && node !== document.body && !visits.has(node)) {
      visits.set(node, judge(node));
    }
  }, true);

  function nameless(nodes) {
    window.axe.setup(document.body);
    try {
      return nodes.filter((node) => node.isConnected && window.axe.commons.text.accessibleText(node).trim() === "")
        .map((node) => `no name: ${told(node)}`);
    } finally {
      window.axe.teardown();
    }
  }

  // The elements that Tab must reach.
  const expected = (within) => all(dialog() ?? document.querySelector(within) ?? document.body).filter((node) => node.matches(usable)
    && !forCode(node) && !byArrows(node) && !rowed(node) && !quick(node) && !another(node));
  window.eyes = {
    // Starts at the beginning of a part and returns its reachable elements.
    start(within) {
      visits = new Map();
      const from = dialog() ? null : document.querySelector(within);
      document.activeElement?.blur();
      from?.focus();
      if (from && document.activeElement !== from) {
        expected(within)[0]?.focus();
      }
      return expected(within).map(told);
    },
    waiting: (within) => expected(within).filter((node) => !visits.has(node) && node !== document.activeElement).length,
    // Reports errors of elements that existed at the start, because a list may have changed in between.
    wrongs(within, present) {
      const reached = new Set([...visits.keys()].map(told));
      const nodes = expected(within);
      const missed = nodes.filter((node) => !visits.has(node) && present.includes(told(node)) && !reached.has(told(node)));
      const beyond = all(dialog() ?? document.body).filter((node) => !node.matches(usable) && !node.querySelector(usable)
        && !node.matches("dialog, label, form, .u-wrap") // a chart has its values in a table next to it
        && !node.closest("a, button, label, summary, [role=option]"));
      return [...new Set([...missed.map((node) => `Tab does not reach ${told(node)}`),
        ...nodes.filter((node) => visits.get(node)).map((node) => `${visits.get(node)}: ${told(node)}`),
        ...beyond.map((node) => `only a pointer can use ${told(node)}`), ...nameless(nodes)])];
    },
  };
}

let looks = 0;

// look returns the errors of the current page or a part of it, in both color schemes, at every size or the next one in
// rotation.
export async function look(page, what, within, all) {
  const wrong = [];
  for (const [width, height] of all ? sizes : [sizes[looks++ % sizes.length]]) {
    await page.setViewportSize({ width, height });
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const at = await page.evaluate(tooWide);
    const whole = within === "#main" && width === sizes[0][0]; // elements around it are the same at all sizes
    const colours = !all || width !== enlarged;
    at.push(...await barriers(page, whole ? null : within, { type: "tag", values: asked }, colours ? [] : ofColours));
    if (colours) {
      await page.emulateMedia({ colorScheme: "dark" });
      at.push(...(await barriers(page, within, { type: "rule", values: ofColours })).map((one) => `dark: ${one}`));
      await page.emulateMedia({ colorScheme: "light" });
    }
    at.push(...await byKeyboard(page, within));
    wrong.push(...at.map((one) => `${what}, ${width}: ${one}`));
  }
  await page.setViewportSize({ width: sizes[0][0], height: sizes[0][1] });
  return wrong;
}

// Runs in the page: finds what makes it scroll sideways, with times as long as they can get.
function tooWide() {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const was = new Map();
  while (texts.nextNode()) {
    const { currentNode: node, currentNode: { nodeValue: text } } = texts;
    const longest = text.replace(/(?<!\d)\d\d? (sec\.|min\.|hr\.|days?) ago|yesterday|\bnow\b/g, "59 min. ago").replace(/(?<!\d)\d(:\d\d [AP]M)/g, "12$1");
    if (longest !== text) {
      was.set(node, text);
      node.nodeValue = longest;
    }
  }
  const { scrollWidth, clientWidth } = document.documentElement;
  const beyond = [...document.querySelectorAll("body *")].filter((node) => node.getBoundingClientRect().right > clientWidth + 1);
  const told = beyond.slice(-3).map((node) => node.cloneNode(false).outerHTML.slice(0, 120));
  was.forEach((text, node) => { node.nodeValue = text; });
  return scrollWidth <= innerWidth ? [] : [`the page is ${scrollWidth} wide, to where these are: ${told.join(", ")}`];
}

// barriers returns axe's findings for a part of the page or the whole; excluded rules are tested elsewhere.
function barriers(page, within, runOnly, leftOut = []) {
  const rules = Object.fromEntries([[spoken, { enabled: true }], ...leftOut.map((rule) => [rule, { enabled: false }])]);
  return page.evaluate(async ([part, only, others]) => {
    const of = part ? document.querySelector("dialog[open]") ?? document.querySelector(part) : document;
    const settings = { resultTypes: ["violations"], runOnly: only, rules: others, preload: false, iframes: false };
    const { violations } = await window.axe.run(of, settings);
    // Targets half covered by the bottom bar, at the current scroll position, are not too small.
    const fair = (nodes) => nodes.filter(({ any }) => !/partially obscured/.test(any[0]?.message));
    const told = ({ html, any }) => `${html.slice(0, 160)} ${any[0]?.message?.slice(0, 150) ?? ""}`;
    return violations.filter(({ nodes }) => fair(nodes).length > 0)
      .map(({ id, nodes }) => `${id}: ${fair(nodes).slice(0, 3).map(told).join(" | ")}`);
  }, [within, runOnly, rules]);
}

// byKeyboard presses Tab until all elements that existed before are reached, or no new one follows.
async function byKeyboard(page, within) {
  const client = page.keyboard.client ??= await page.context().newCDPSession(page);
  const present = await page.evaluate((part) => window.eyes.start(part), within);
  const send = (type) => client.send("Input.dispatchKeyEvent", { type, key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 });
  let [waiting, before] = [present.length, Infinity];
  for (let stuck = 0; waiting > 0 && stuck < 3;) {
    const presses = [];
    for (let i = 0; i < Math.min(waiting + 1, 60); i++) {
      presses.push(send("rawKeyDown"), send("keyUp"));
    }
    await Promise.all(presses);
    before = waiting;
    waiting = await page.evaluate((part) => window.eyes.waiting(part), within);
    stuck = waiting < before ? 0 : stuck + 1;
  }
  await send("rawKeyDown"); // so that the last one is evaluated
  await send("keyUp");
  return page.evaluate(([part, now]) => window.eyes.wrongs(part, now), [within, present]);
}
