// Pictures of ten views, in light and dark, at the width of a desk and of a phone, for docs/screens.
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { chromium } from "playwright-core";
import { base, input } from "./browser.mjs";
import { section, settled, signIn } from "./console.mjs";

const views = [
  ["triage", "nurse", async () => {}],
  ["patient", "provider", openFirst],
  ["thresholds", "provider", async (page) => { await openFirst(page); await tab(page, "Thresholds"); }],
  ["bill", "provider", async (page) => { await openFirst(page); await tab(page, "Bill"); }],
  ["alerts", "nurse", (page) => section(page, "Alerts").click()],
  ["escalations", "nurse", (page) => section(page, "Escalations").click()],
  ["inbox", "provider", (page) => section(page, "Inbox").click()],
  ["billing", "billing", (page) => section(page, "Billing").click()],
  ["reports", "billing", (page) => section(page, "Reports").click()],
  ["operations", "admin", (page) => section(page, "Operations").click()],
];

async function openFirst(page) {
  await page.locator(".triage > .row").first().click();
  await page.getByRole("button", { name: "Whole chart" }).click();
  await page.getByRole("navigation", { name: "About this patient" }).waitFor();
}

const tab = (page, name) => page.getByRole("navigation", { name: "About this patient" }).getByRole("button", { name }).click();

await mkdir(input.folder, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"] });
for (const [size, viewport] of [["desktop", { width: 1360, height: 900 }], ["phone", { width: 390, height: 844 }]]) {
  for (const colorScheme of ["light", "dark"]) {
    for (const [name, role, open] of views) {
      const page = await browser.newPage({ viewport, colorScheme, reducedMotion: "reduce" });
      await signIn(page, `${role}@vigil.example`);
      await open(page);
      await settled(page);
      await page.screenshot({ path: path.join(input.folder, `${name}-${size}-${colorScheme}.png`) });
      await page.close();
    }
  }
}
await browser.close();
console.log(JSON.stringify({ base }));
