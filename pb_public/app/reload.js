// Over a reload the session is held by the service worker: in its memory, for one page, for seconds. The tab keeps a slip with a random
// word, which is of no use without the worker.

const slip = "vigil.reload";
const answerIn = 2_000;
/** @type {ServiceWorkerRegistration | null} */
let registration = null;

/** Has the worker there before it is needed. Without one, as in a private window, a reload signs off. */
export function readyForReload() {
  navigator.serviceWorker?.register("/push-worker.js").then((made) => { registration = made; }, () => {});
  addEventListener("pageshow", ({ persisted }) => persisted && take()); // it never left, and nobody else may have it
}

/** @param {any} session what the next page needs */
export function leaveForReload(session) {
  const worker = registration?.active;
  if (worker) {
    const word = crypto.getRandomValues(new Uint32Array(4)).join("-");
    sessionStorage.setItem(slip, word);
    worker.postMessage({ keep: word, session });
  }
}

/** What the page before this one left, when this one is that one loaded anew; else null. */
export async function fromReload() {
  const [way] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
  const session = await take();
  return way?.type === "reload" ? session : null;
}

/** Takes back what was left, whatever becomes of it. @returns {Promise<any>} */
async function take() {
  const word = sessionStorage.getItem(slip);
  sessionStorage.removeItem(slip);
  const worker = word && (await navigator.serviceWorker?.getRegistration("/"))?.active;
  if (!worker) {
    return null;
  }
  return new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    const timer = setTimeout(() => done(null), answerIn);
    port1.onmessage = ({ data }) => { clearTimeout(timer); done(data); };
    worker.postMessage({ take: word }, [port2]);
  });
}
