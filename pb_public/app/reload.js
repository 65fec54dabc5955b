// Keeps the session over a reload: the service worker holds it in memory, for one page, for seconds. The tab stores a random ticket, which
// is useless without the worker.

const ticketKey = "vigil.reload";
const replyTimeout = 2_000;
/** @type {ServiceWorkerRegistration | null} */
let registration = null;

/** Registers the worker early. Without one, as in a private window, a reload signs the user out. */
export function prepareReload() {
  navigator.serviceWorker?.register("/push-worker.js").then((made) => { registration = made; }, () => {});
  addEventListener("pageshow", ({ persisted }) => persisted && takeSession()); // the page never closed: no other page may take its session
}

/** @param {any} session the data for the next page */
export function saveForReload(session) {
  const worker = registration?.active;
  if (worker) {
    const ticket = crypto.getRandomValues(new Uint32Array(4)).join("-");
    sessionStorage.setItem(ticketKey, ticket);
    worker.postMessage({ keep: ticket, session });
  }
}

/** The session that this page had before its reload; otherwise null. */
export async function takeAfterReload() {
  const [navigation] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
  const session = await takeSession();
  return navigation?.type === "reload" ? session : null;
}

/** Removes the session from the worker and returns it. @returns {Promise<any>} */
async function takeSession() {
  const ticket = sessionStorage.getItem(ticketKey);
  sessionStorage.removeItem(ticketKey);
  const worker = ticket && (await navigator.serviceWorker?.getRegistration("/"))?.active;
  if (!worker) {
    return null;
  }
  return new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    const timer = setTimeout(() => done(null), replyTimeout);
    port1.onmessage = ({ data }) => { clearTimeout(timer); done(data); };
    worker.postMessage({ take: ticket }, [port2]);
  });
}
