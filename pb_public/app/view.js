// The view library. All other modules import it from here.
import { Fragment, h, render } from "/vendor/preact.js";
import htm from "/vendor/htm.js";

export { Fragment, render };
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "/vendor/preact-hooks.js";
export { batch, computed, effect, signal } from "/vendor/preact-signals.js";

export const html = htm.bind(h);

/** The logo's address, of this version. */
export const logo = new URL("../favicon.svg", import.meta.url).pathname;

/** Joins the class names that are not false. @param {...(string|false|null|undefined)} names */
export const classes = (...names) => names.filter(Boolean).join(" ");
