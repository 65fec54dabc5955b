// The service worker for Web Push: shows notifications, which name no patient, and opens the app when one is clicked. The details are
// shown in the app after sign-in.
const generic = { title: "Vigil", body: "You have a new notification.", url: "/" };

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  if (event.data === null || event.data.text() === "") {
    return; // a test of the subscription, without content
  }
  const message = read(event.data);
  event.waitUntil(self.registration.showNotification(message.title, {
    body: message.body,
    tag: message.notification_id === undefined ? undefined : `vigil-${message.notification_id}`, // a repeat replaces the first
    data: { url: message.url },
    requireInteraction: message.channel === "escalations",
  }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.url ?? generic.url));
});

// read never fails: an unreadable push still shows a generic notification.
function read(data) {
  try {
    return { ...generic, ...data.json() };
  } catch {
    return generic;
  }
}

// open focuses an open window of the app and sends it the target, or opens a window. It does not reload a window, which would sign the user
// out. Targets on other origins are replaced by the home page.
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

// sessions of pages that reload, by their ticket: in memory only, returned once, deleted after seconds.
const sessions = new Map();
const holdTime = 20_000;

self.addEventListener("message", (event) => {
  const { keep, take, session } = event.data ?? {};
  if (event.source?.type !== "window" || new URL(event.source.url).pathname !== "/") {
    return;
  }
  if (typeof keep === "string") {
    sessions.set(keep, session);
    event.waitUntil(new Promise((done) => setTimeout(() => { sessions.delete(keep); done(); }, holdTime)));
  } else if (typeof take === "string") {
    event.ports[0]?.postMessage(sessions.get(take) ?? null);
    sessions.delete(take);
  }
});
