// One topic of the service's stream of events, for as long as somebody wants it. A connection that breaks is opened again by
// itself, and what was missed meanwhile is not repeated; one that is refused is not.
const address = "/api/realtime";
const waits = [200, 300, 500, 1_000, 1_200, 1_500, 2_000]; // milliseconds before the next try; the last one again and again

/**
 * Follows a topic until the returned function is called. up is called each time that it is followed from now on, down when it no longer
 * is, with whether it is tried again.
 * @param {string} topic @param {string} token @param {{told: (message: any) => void, up: () => void, down: (again: boolean) => void}} calls
 */
export function follow(topic, token, { told, up, down }) {
  /** @type {EventSource | null} */
  let stream = null;
  let asking = new AbortController(); // what is wanted on a stream that is over is asked no longer
  let timer = 0;
  let tries = 0;
  const end = () => { clearTimeout(timer); asking.abort(); stream?.close(); stream = null; };
  const again = () => {
    end();
    timer = setTimeout(open, waits[Math.min(tries++, waits.length - 1)]);
    down(true);
  };
  const open = () => {
    const mine = stream = new EventSource(address);
    const { signal } = asking = new AbortController();
    const ours = () => mine === stream; // else it has broken meanwhile, or nobody wants it any more
    mine.addEventListener("error", () => ours() && again());
    mine.addEventListener(topic, ({ data }) => ours() && told(JSON.parse(data)));
    mine.addEventListener("PB_CONNECT", async ({ lastEventId }) => {
      const status = await want(lastEventId, topic, token, signal);
      if (!ours()) {
        return;
      }
      if (status < 300) {
        tries = 0;
        up();
      } else if (status >= 500 || status === 404) { // the stream was over before anybody was told what is wanted on it
        again();
      } else {
        end();
        down(false);
      }
    });
  };
  open();
  return end;
}

/** Says what is wanted on an open stream.
 * @param {string} clientId @param {string} topic @param {string} token @param {AbortSignal} signal
 * @returns {Promise<number>} the status; 503 when nobody answers */
const want = (clientId, topic, token, signal) => fetch(address, {
  method: "POST", signal, credentials: "omit", cache: "no-store", headers: { "Content-Type": "application/json", Authorization: token },
  body: JSON.stringify({ clientId, subscriptions: [topic] }),
}).then((answer) => answer.status, () => 503);
