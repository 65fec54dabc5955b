// Opens PocketBase's realtime stream with its official SDK and a Vigil access token, and prints the server's answer to the
// subscription. Usage: node realtime.mjs URL TOKEN TOPIC
import { EventSource } from "eventsource";
import PocketBase from "pocketbase";

globalThis.EventSource = EventSource;
const [url, token, topic] = process.argv.slice(2);

const pb = new PocketBase(url);
pb.authStore.save(token, null);
const answer = { valid: pb.authStore.isValid };

// The SDK's request and answer for the subscription; the stream itself has no token.
pb.afterSend = (response, data) => {
  if (new URL(response.url).pathname === "/api/realtime") answer.status = response.status;
  return data;
};
try {
  await pb.realtime.subscribe(topic, () => {});
  answer.subscribed = true;
} catch (refusal) {
  answer.subscribed = false;
  answer.status ??= refusal.status;
}
console.log(JSON.stringify(answer));
process.exit(0);
