// A reload on a slow line requests the page and the data; modules and styles come from the browser's cache.
import assert from "node:assert/strict";
import { run } from "./browser.mjs";
import { signIn } from "./console.mjs";

await run(async (page) => {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Network.enable");
  await cdp.send("Network.emulateNetworkConditions", { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 200_000 });
  const asked = new Map();
  cdp.on("Network.requestWillBeSent", ({ requestId, request }) => asked.set(requestId, request.url));
  cdp.on("Network.requestServedFromCache", ({ requestId }) => asked.delete(requestId));
  cdp.on("Network.responseReceived", ({ requestId, response }) => response.fromDiskCache && asked.delete(requestId));
  const rows = page.locator(".triage > .row");
  const begin = Date.now();
  await signIn(page, "nurse@vigil.example");
  await rows.first().waitFor();
  const first = { requests: asked.size, milliseconds: Date.now() - begin };
  await page.locator(".stream.live").waitFor();
  await page.waitForTimeout(500);
  asked.clear();
  const again = Date.now();
  await page.reload();
  await rows.first().waitFor();
  const milliseconds = Date.now() - again;
  const urls = [...asked.values()].map((url) => new URL(url).pathname);
  assert.deepEqual(urls.filter((path) => /\.(js|css|svg)$/.test(path)), [], "files are requested again");
  assert.ok(urls.length <= 12, `a reload takes ${urls.length} requests: ${urls.join(" ")}`);
  return { first, reload: { requests: urls.length, milliseconds } };
}, { tolerate: /./ });
