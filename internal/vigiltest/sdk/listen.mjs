// Subscribes to a topic with PocketBase's official SDK and a Vigil access token, and prints one line of JSON for the
// subscription and for each message until it is stopped. Usage: node listen.mjs URL TOKEN TOPIC
import { EventSource } from "eventsource";
import PocketBase from "pocketbase";

globalThis.EventSource = EventSource;
const [url, token, topic] = process.argv.slice(2);

const pb = new PocketBase(url);
pb.authStore.save(token, null);
const tell = (line) => console.log(JSON.stringify(line));
try {
  await pb.realtime.subscribe(topic, tell);
  tell({ subscribed: true });
} catch (refusal) {
  tell({ subscribed: false, status: refusal.status });
  process.exit(0);
}
