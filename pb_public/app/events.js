// Follows one topic of the server's event stream. A broken connection is reopened automatically, and missed messages are not repeated; a
// refused subscription is not retried.
const address = "/api/realtime";
const retryDelays = [200, 300, 500, 1_000, 1_200, 1_500, 2_000]; // milliseconds before the next attempt; the last value repeats

/**
 * Follows a topic until the returned function is called. Calls up each time that the subscription is accepted, and down when it ends, with
 * whether it is retried.
 * @param {string} topic @param {string} token @param {{onMessage: (message: any) => void, onUp: () => void, onDown: (again: boolean) =>
 * void}} calls
 */
export function follow(topic, token, { onMessage, onUp, onDown }) {
  /** @type {EventSource | null} */
  let stream = null;
  let subscription = new AbortController(); // cancels the subscription request of a closed stream
  let timer = 0;
  let attempts = 0;
  const end = () => { clearTimeout(timer); subscription.abort(); stream?.close(); stream = null; };
  const retry = () => {
    end();
    timer = setTimeout(open, retryDelays[Math.min(attempts++, retryDelays.length - 1)]);
    onDown(true);
  };
  const open = () => {
    const opened = stream = new EventSource(address);
    const { signal } = subscription = new AbortController();
    const isCurrent = () => opened === stream; // false after a reconnect or an unfollow
    opened.addEventListener("error", () => isCurrent() && retry());
    opened.addEventListener(topic, ({ data }) => isCurrent() && onMessage(JSON.parse(data)));
    opened.addEventListener("PB_CONNECT", async ({ lastEventId }) => {
      const status = await subscribe(lastEventId, topic, token, signal);
      if (!isCurrent()) {
        return;
      }
      if (status < 300) {
        attempts = 0;
        onUp();
      } else if (status >= 500 || status === 404) { // the stream closed before the subscription arrived
        retry();
      } else {
        end();
        onDown(false);
      }
    });
  };
  open();
  return end;
}

/** Subscribes an open stream to the topic.
 * @param {string} clientId @param {string} topic @param {string} token @param {AbortSignal} signal
 * @returns {Promise<number>} the status; 503 when there is no response */
const subscribe = (clientId, topic, token, signal) => fetch(address, {
  method: "POST", signal, credentials: "omit", cache: "no-store", headers: { "Content-Type": "application/json", Authorization: token },
  body: JSON.stringify({ clientId, subscriptions: [topic] }),
}).then((answer) => answer.status, () => 503);
