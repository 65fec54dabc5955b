// Keeps a page of the triage list up to date from the stream: changes are gathered for a moment, put in place, and the page
// is fetched only when rows entered or left it, or when the stream was cut.
import { listen, onGap } from "../../live.js";
import { useEffect, useRef } from "../../view.js";
import { settled } from "./order.js";

/** @typedef {import("./order.js").Row} Row */

const gather = 200; // milliseconds in which several changes become one
const soonest = 5_000; // between two fetches; it doubles while fetches follow each other
const slowest = 20_000;
const calm = 60_000; // without a fetch, after which the next comes at once

/**
 * @param {{data: any, reload: () => void, change: (step: (data: any) => any) => void}} list
 * @param {any} stats a useLoad
 * @param {import("./order.js").Filters} filters
 * @returns {{current: {still: boolean, release: () => void}}} still holds the order, for a pointer over a row's buttons
 */
export function useLiveList(list, stats, filters) {
  const hold = useRef({ still: false, release: () => {} });
  const now = useRef({ filters, reload: list.reload });
  now.current = { filters, reload: list.reload };
  useEffect(() => {
    /** @type {Map<string, Row | null>} */
    const told = new Map();
    let owed = false;
    const fetch = () => {
      owed = hold.current.still;
      if (!owed) {
        now.current.reload();
      }
    };
    const fetcher = paced(fetch);
    let timer = 0;
    const apply = () => {
      timer = 0;
      const news = new Map(told);
      told.clear();
      list.change((page) => {
        const { page: next, stale } = settled(page, news, now.current.filters, hold.current.still);
        if (stale) {
          fetcher.ask();
        }
        return next;
      });
    };
    hold.current.release = () => {
      apply();
      if (owed) {
        fetch();
      }
    };
    const stops = [
      listen("patient", ({ data }) => {
        told.set(data.patient_id, data.removed ? null : data);
        timer ||= setTimeout(apply, gather);
      }),
      listen("stats", ({ data }) => stats.change(() => data)),
      onGap(() => { told.clear(); now.current.reload(); stats.reload(); }),
    ];
    return () => { clearTimeout(timer); fetcher.stop(); stops.forEach((stop) => stop()); };
  }, []);
  return hold;
}

/** Calls fetch soon after it is asked to, the more seldom the more often it is asked. @param {() => void} fetch */
function paced(fetch) {
  let pause = soonest;
  let last = 0;
  let timer = 0;
  return {
    ask() {
      if (timer) {
        return;
      }
      const since = Date.now() - last;
      pause = since > calm ? soonest : Math.min(pause * 1.5, slowest);
      timer = setTimeout(() => { timer = 0; last = Date.now(); fetch(); }, since > calm ? 300 : Math.max(pause - since, 0));
    },
    stop() { clearTimeout(timer); },
  };
}
