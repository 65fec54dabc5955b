// Follows one topic of the server's event stream. A broken connection is reopened automatically, and missed messages are not repeated; a
// refused subscription is not retried.
const address = "/api/realtime";
const waits = [200, 300, 500, 1_000, 1_200, 1_500, 2_000]; // milliseconds before the next attempt; the last value repeats

/**
 * Follows a topic until the returned function is called. Calls up each time that the subscription is accepted, and down when it ends, with
 * whether it is retried.
 * @param {string} topic @param {string} token @param {{told: (message: any) => void, up: () => void, down: (again: boolean) => void}} calls
 */
export function follow(topic, token, { told, up, down }) {
  /** @type {EventSource | null} */
  let stream = null;
  let asking = new AbortController(); // cancels the subscription request of a closed stream
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
    const ours = () => mine === stream; // false after a reconnect or an unfollow
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
      } else if (status >= 500 || status === 404) { // the stream closed before the subscription arrived
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

/** Subscribes an open stream to the topic.
 * @param {string} clientId @param {string} topic @param {string} token @param {AbortSignal} signal
 * @returns {Promise<number>} the status; 503 when there is no response */
const want = (clientId, topic, token, signal) => fetch(address, {
  method: "POST", signal, credentials: "omit", cache: "no-store", headers: { "Content-Type": "application/json", Authorization: token },
  body: JSON.stringify({ clientId, subscriptions: [topic] }),
}).then((answer) => answer.status, () => 503);
