// The service worker behind Web Push: shows what the service sent, which names nobody, and opens the app when it is touched. The details are
// read in the app, after signing in.
const generic = { title: "Vigil", body: "You have a new notification.", url: "/" };

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  if (event.data === null || event.data.text() === "") {
    return; // a test of the subscription: there is nothing to show
  }
  const message = read(event.data);
  event.waitUntil(self.registration.showNotification(message.title, {
    body: message.body,
    tag: message.notification_id === undefined ? undefined : `vigil-${message.notification_id}`, // a repeat takes the place of the first
    data: { url: message.url },
    requireInteraction: message.channel === "escalations",
  }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.url ?? generic.url));
});

// read never fails: a push that cannot be read is still a reason to look.
function read(data) {
  try {
    return { ...generic, ...data.json() };
  } catch {
    return generic;
  }
}

// open brings an open window of the app to the front and tells it what to show, or opens one. A window is not made to load anew: that would
// sign its user off. It goes nowhere but to this service.
async function open(path) {
  const url = new URL(path, self.location.origin);
  const target = url.origin === self.location.origin ? url.href : self.location.origin + generic.url;
  for (const client of await self.clients.matchAll({ type: "window", includeUncontrolled: true })) {
    if (new URL(client.url).pathname === "/") {
      client.postMessage({ open: target });
      return client.focus();
    }
  }
  return self.clients.openWindow(target);
}

// held is what a page leaves while it is loaded anew, by the word that it keeps: in memory only, given out once, gone after seconds.
const held = new Map();
const holdFor = 20_000;

self.addEventListener("message", (event) => {
  const { keep, take, session } = event.data ?? {};
  if (event.source?.type !== "window" || new URL(event.source.url).pathname !== "/") {
    return;
  }
  if (typeof keep === "string") {
    held.set(keep, session);
    event.waitUntil(new Promise((done) => setTimeout(() => { held.delete(keep); done(); }, holdFor)));
  } else if (typeof take === "string") {
    event.ports[0]?.postMessage(held.get(take) ?? null);
    held.delete(take);
  }
});
