// Screenshots of the views for docs/screens. INPUT lists them, each with its look. WebP takes half the size of PNG.
import { mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { chromium } from "playwright-core";
import { base, input, quiet } from "./browser.mjs";
import { settled, signIn } from "./console.mjs";

// Actions before a screenshot, by its name.
const doors = {
  account: (page) => page.getByRole("button", { name: "Add a passkey" }).waitFor(),
  "triage-panel": async (page) => {
    await page.locator(".triage > .row").nth(1).click();
    await page.locator("aside.drawer .causes[aria-busy=false]").waitFor();
    await page.locator("aside.drawer .past canvas").waitFor();
  },
  "triage-find": async (page) => {
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").fill("ha");
    await page.getByRole("option", { name: /MRN/ }).first().waitFor();
  },
  "alerts-chosen": async (page) => {
    for (const n of [0, 2]) {
      await page.getByRole("checkbox", { name: /^Select (?!all)/ }).nth(n).check();
    }
  },
  "my-health-questions": (page) => page.getByRole("button", { name: /^(Answer|Responder):/ }).first().click(),
  "escalations-chosen": (page) => page.getByRole("button", { name: /^About the escalation/ }).first().click(),
};

const sizes = { desktop: { width: 1360, height: 900 }, phone: { width: 390, height: 844 } };
let pictures = 0;

async function open(page, { name, view, tab, about }) {
  const go = (to) => page.evaluate(([v, a, q]) => consoleModule("router.js").then((router) => router.go(v, a, q)), to);
  await page.evaluate(() => document.activeElement?.blur());
  await go(["nowhere", {}, {}]); // clears the previous view, above all charts of the other color scheme
  await settled(page);
  await go([view, about ?? {}, tab ? { tab } : {}]);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await settled(page);
  await doors[name]?.(page);
  await page.locator("[role=tabpanel]").last().evaluate((panel) => { // on a phone a tab's content may be far down
    if (panel.getBoundingClientRect().top > innerHeight / 2) {
      panel.scrollIntoView();
      scrollBy(0, -160);
    }
  }, null, { timeout: 100 }).catch(() => {}); // it has none
  await page.waitForLoadState("networkidle", { timeout: 3000 }).catch(() => {}); // the live list keeps its connection open
  await settled(page);
}

async function shoot(page, name, isFull) {
  const client = page.client ??= await page.context().newCDPSession(page);
  if (isFull) { // the bar at the lower edge has its place in a window of the page's height
    await page.setViewportSize({ ...sizes.phone, height: await page.evaluate(() => document.documentElement.scrollHeight) });
  }
  const { data } = await client.send("Page.captureScreenshot", { format: "webp", quality: 70 });
  await writeFile(path.join(input.folder, `${name}.webp`), Buffer.from(data, "base64"));
  pictures++;
}

await rm(input.folder, { recursive: true, force: true });
await mkdir(input.folder, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"] });
for (const role of new Set(input.screens.map((one) => one.role))) {
  const context = await browser.newContext({ viewport: sizes.desktop, reducedMotion: "reduce" });
  await quiet(context);
  const page = await context.newPage();
  await page.goto(`${base}/`);
  await page.getByLabel("Email").waitFor();
  const take = async (wanted) => {
    for (const one of wanted) {
      const [size, colorScheme] = one.look.split("-");
      await page.setViewportSize(sizes[size]);
      await page.emulateMedia({ colorScheme });
      if (one.view) {
        await open(page, one);
      }
      if (one.language) {
        await page.getByRole("button", { name: one.language, exact: true }).click();
        await settled(page);
      }
      await shoot(page, `${one.name}-${one.look}`, Boolean(one.language));
      await page.keyboard.press("Escape");
    }
  };
  const mine = input.screens.filter((one) => one.role === role);
  await take(mine.filter((one) => !one.view));
  await page.setViewportSize(sizes.desktop);
  await page.emulateMedia({ colorScheme: "light" });
  await signIn(page, `${role}@vigil.example`);
  await settled(page);
  await take(mine.filter((one) => one.view));
  await context.close();
}
await browser.close();
console.log(JSON.stringify({ pictures }));
