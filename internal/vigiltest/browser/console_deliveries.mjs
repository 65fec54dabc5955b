// Dead letters, for a new administrator: the notice leads to the list, each delivery shows its remedy, and the filtered
// deliveries are requeued after a confirmation with their number.
import assert from "node:assert/strict";
import { input, run, shows } from "./browser.mjs";
import { accessible, section, settled, signIn, signOff } from "./console.mjs";

await run(async (page) => {
  const many = input.failures.length;
  const rows = page.getByRole("region", { name: "Deliveries, newest first" }).locator("tbody tr");
  const dialog = page.getByRole("dialog");
  await signIn(page, input.email);
  await section(page, "EMR").click();
  await shows(page.getByRole("status"), `${many} deliveries are not retried automatically.`);
  await shows(page.locator(".badge"), "EMR: connected");
  await page.getByLabel("From").fill("2001-01-01"); // an earlier choice must not hide any
  await page.getByRole("button", { name: "Show these deliveries" }).click();
  await settled(page);
  assert.equal(await page.getByLabel("From").inputValue(), "");
  assert.equal(await rows.count(), many);
  await accessible(page, "what was given up");
  for (const { id, what, todo } of input.failures) {
    await shows(rows.filter({ hasText: id }).locator(".badge"), "Not retried");
    await rows.filter({ hasText: id }).getByRole("button", { name: id }).click();
    await shows(dialog, what);
    await shows(dialog, todo);
    await shows(dialog, "EMR error message");
    await shows(dialog, "None scheduled");
    await dialog.getByRole("button", { name: "Close" }).click();
    await dialog.waitFor({ state: "detached" });
  }
  await page.getByLabel("Error").selectOption("auth_error");
  await page.getByRole("button", { name: `Requeue ${input.ofAuth} deliveries` }).click();
  await shows(dialog, "Sign-in or scope rejected");
  await accessible(page, "the question before queueing again");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: `Requeue ${input.ofAuth} deliveries` }).click();
  await dialog.getByRole("button", { name: `Requeue ${input.ofAuth}` }).click();
  await shows(page.locator(".toast"), `${input.ofAuth} requeued.`);
  await shows(page.getByRole("main"), "No deliveries match");
  await page.getByLabel("Error").selectOption("");
  await page.getByRole("button", { name: `Requeue ${many - input.ofAuth} deliveries` }).click();
  await dialog.getByRole("button", { name: `Requeue ${many - input.ofAuth}` }).click();
  await shows(page.getByRole("main"), "No deliveries match");
  await page.getByRole("button", { name: /^Requeue / }).waitFor({ state: "detached" });
  await page.getByText("not retried automatically").waitFor({ state: "detached" });
  await signOff(page);
  return {};
});
