// Clicks on notifications. Browsers let a service worker focus or open windows only after a real click, which a test cannot
// make, so these two calls are recorded instead. The rest is real: the notification, the event, the message to the page, and
// the console.
import assert from "node:assert/strict";
import { base, input, run } from "./browser.mjs";
import { heading, signIn } from "./console.mjs";

run(async (page) => {
  await page.context().grantPermissions(["notifications"], { origin: base });
  await page.goto(base + "/reset-password"); // of this service, but not the app
  const registered = page.evaluate(async () => {
    await navigator.serviceWorker.register("/push-worker.js");
    await navigator.serviceWorker.ready;
  });
  const worker = page.context().serviceWorkers()[0] ?? await page.context().waitForEvent("serviceworker");
  await registered;
  await worker.evaluate(() => {
    self.noted = [];
    WindowClient.prototype.focus = async function focus() { self.noted.push(["focus", new URL(this.url).pathname]); return this; };
    Clients.prototype.openWindow = async (url) => { self.noted.push(["open", url]); return null; };
  });
  const touch = (data) => worker.evaluate(async (data) => {
    self.noted = [];
    await self.registration.showNotification("Clinical alert", { data });
    const [notification] = await self.registration.getNotifications();
    const waits = [];
    const event = new NotificationEvent("notificationclick", { notification });
    event.waitUntil = (promise) => waits.push(promise);
    self.dispatchEvent(event);
    await Promise.all(waits);
    return { noted: self.noted, left: (await self.registration.getNotifications()).length };
  }, data);

  const home = base + "/";
  const address = `${home}?notification=${input.notification}`;
  for (const [data, opened] of [
    [{ url: `/?notification=${input.notification}` }, address], [{ url: "https://elsewhere.example/" }, home], [{ url: "//elsewhere.example/x" }, home],
    [{ url: "javascript:alert(1)" }, home], [{}, home], [null, home],
  ]) {
    assert.deepEqual(await touch(data), { noted: [["open", opened]], left: 0 }, JSON.stringify(data));
  }

  // A window of the app is not reloaded, which would sign its user out; a message makes it navigate.
  await signIn(page, input.email);
  await page.evaluate(() => { window.stayed = true; });
  assert.deepEqual(await touch({ url: `/?notification=${input.notification}` }), { noted: [["focus", "/"]], left: 0 });
  await heading(page, input.heading).waitFor();
  assert.equal(await page.evaluate(() => window.stayed), true, "the page was loaded anew");
  return page.url().startsWith(home);
});
