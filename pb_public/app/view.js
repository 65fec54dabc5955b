// The view library under one name: everything else in the console imports it from here.
import { Fragment, h, render } from "/vendor/preact.js";
import htm from "/vendor/htm.js";

export { Fragment, render };
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "/vendor/preact-hooks.js";
export { batch, computed, effect, signal } from "/vendor/preact-signals.js";

export const html = htm.bind(h);

/** Joins the class names that hold. @param {...(string|false|null|undefined)} names */
export const classes = (...names) => names.filter(Boolean).join(" ");
