// Keeps the session over a reload: the service worker holds it in memory, for one page, for seconds. The tab stores a random ticket, which
// is useless without the worker.

const slip = "vigil.reload";
const answerIn = 2_000;
/** @type {ServiceWorkerRegistration | null} */
let registration = null;

/** Registers the worker early. Without one, as in a private window, a reload signs the user out. */
export function readyForReload() {
  navigator.serviceWorker?.register("/push-worker.js").then((made) => { registration = made; }, () => {});
  addEventListener("pageshow", ({ persisted }) => persisted && take()); // the page never closed: no other page may take its session
}

/** @param {any} session the data for the next page */
export function leaveForReload(session) {
  const worker = registration?.active;
  if (worker) {
    const word = crypto.getRandomValues(new Uint32Array(4)).join("-");
    sessionStorage.setItem(slip, word);
    worker.postMessage({ keep: word, session });
  }
}

/** The session that this page had before its reload; otherwise null. */
export async function fromReload() {
  const [way] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
  const session = await take();
  return way?.type === "reload" ? session : null;
}

/** Removes the session from the worker and returns it. @returns {Promise<any>} */
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
