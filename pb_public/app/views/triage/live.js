// Updates a page of the triage list from the stream. Changes are batched and applied in place; the page is loaded again only when rows
// enter or leave it, or after a disconnect. While the list is in use its order is held.
import { listen, onGap } from "../../live.js";
import { useEffect, useRef, useState } from "../../view.js";
import { applyChanges } from "./order.js";

/** @typedef {import("./order.js").Row} Row */

const batchTime = 200; // milliseconds to batch changes
const minPause = 5_000; // between two reloads; grows with consecutive reloads
const maxPause = 20_000;
const calmTime = 60_000; // without a reload, after which the next is immediate

/** @typedef {{still: boolean, release: () => void}} Hold still: the order is held; release resumes it */

/**
 * @param {{data: any, reload: () => void, change: (step: (data: any) => any) => void}} list
 * @param {any} stats a useLoad
 * @param {import("./order.js").Filters} filters
 * @param {() => Promise<any>} again loads the current page
 * @returns {{hold: {current: Hold}, waiting: boolean}} waiting: the shown order is out of date
 */
export function useLiveList(list, stats, filters, again) {
  const hold = useRef(/** @type {Hold} */ ({ still: false, release: () => {} }));
  const [waiting, setWaiting] = useState(false);
  const known = JSON.stringify(filters);
  useEffect(() => setWaiting(false), [known]);
  const now = useRef({ filters, again, reload: list.reload });
  now.current = { filters, again, reload: list.reload };
  useEffect(() => {
    /** @type {Map<string, Row | null>} */
    const changed = new Map();
    let isReloadDue = false;
    const fetch = () => {
      isReloadDue = hold.current.still;
      if (!isReloadDue) {
        now.current.reload();
      }
    };
    const fetcher = debounced(fetch);
    let timer = 0;
    const apply = () => {
      timer = 0;
      const changes = new Map(changed);
      changed.clear();
      list.change((page) => {
        const held = hold.current.still;
        const { page: next, stale } = applyChanges(page, changes, now.current.filters, held);
        if (stale) {
          fetcher.request();
        }
        setWaiting(held && (stale || changes.size > 0));
        return next;
      });
    };
    hold.current.release = () => {
      hold.current.still = false;
      setWaiting(false);
      apply();
      if (isReloadDue) {
        fetch();
      }
    };
    const stops = [
      listen("patient", ({ data }) => {
        changed.set(data.patient_id, data.removed ? null : data);
        timer ||= setTimeout(apply, batchTime);
      }),
      // The message has no counts of the user's own.
      listen("stats", ({ data }) => stats.change((/** @type {any} */ before) => ({ ...before, ...data }))),
      onGap(() => {
        stats.reload();
        if (hold.current.still) { // values update immediately, the order later
          isReloadDue = true;
          now.current.again().then(({ results }) => { results.forEach((/** @type {Row} */ row) =>
            changed.set(row.patient_id, row)); apply(); }, () => {});
        } else {
          changed.clear();
          now.current.reload();
        }
      }),
    ];
    return () => { clearTimeout(timer); fetcher.stop(); stops.forEach((stop) => stop()); };
  }, []);
  return { hold, waiting };
}

/** Debounces fetch, with longer pauses for frequent requests. @param {() => void} fetch */
function debounced(fetch) {
  let pause = minPause;
  let last = 0;
  let timer = 0;
  return {
    request() {
      if (timer) {
        return;
      }
      const since = Date.now() - last;
      pause = since > calmTime ? minPause : Math.min(pause * 1.5, maxPause);
      timer = setTimeout(() => { timer = 0; last = Date.now(); fetch(); }, since > calmTime ? 300 : Math.max(pause - since, 0));
    },
    stop() { clearTimeout(timer); },
  };
}
