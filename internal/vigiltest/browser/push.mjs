// The Web Push service worker: it installs, shows a push as a notification, and shows nothing for an empty one.
import assert from "node:assert/strict";
import { base, run } from "./browser.mjs";

run(async (page) => {
  await page.context().grantPermissions(["notifications"], { origin: base });
  await page.goto(base + "/reset-password");
  const registered = page.evaluate(async () => {
    await navigator.serviceWorker.register("/push-worker.js");
    await navigator.serviceWorker.ready;
  });
  const worker = page.context().serviceWorkers()[0] ?? await page.context().waitForEvent("serviceworker");
  await registered;
  const push = (data) => worker.evaluate(async (text) => {
    const waits = [];
    const event = new PushEvent("push", text === null ? {} : { data: text });
    event.waitUntil = (promise) => waits.push(promise);
    self.dispatchEvent(event);
    await Promise.all(waits);
    return (await self.registration.getNotifications()).map((n) => ({ title: n.title, body: n.body, tag: n.tag, url: n.data.url }));
  }, data);
  assert.deepEqual(await push(null), []);
  const message = { title: "Clinical alert", body: "A patient needs attention.", channel: "alerts", notification_id: 7, url: "/?notification=7" };
  await push(JSON.stringify(message));
  return await push(JSON.stringify(message)); // a repeat replaces the first
});
