// Passkeys: added and named, used alone, used after the password, renamed and removed. Chromium's virtual authenticator
// holds them.
import assert from "node:assert/strict";
import { base, input, run, shows } from "./browser.mjs";
import { accessible, heading, section, settled, signIn, signOff } from "./console.mjs";

const email = "nurse@vigil.example";
// Chromium logs each answer from 400 on; here they are expected.
const tolerate = /status of (401|403)/;

await run(async (page) => {
  const debug = await page.context().newCDPSession(page);
  await debug.send("WebAuthn.enable");
  const { authenticatorId } = await debug.send("WebAuthn.addVirtualAuthenticator", {
    options: { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
  });
  const held = async () => (await debug.send("WebAuthn.getCredentials", { authenticatorId })).credentials;
  const mine = page.getByRole("list", { name: "Your passkeys" });
  const dialog = page.getByRole("dialog");
  const toAccount = async () => {
    await section(page, "Account").click();
    await heading(page, "Account").waitFor();
    await settled(page);
  };
  const withPassword = async (button) => { // the service prompts for the password only then
    await dialog.getByRole("button", { name: button, exact: true }).click();
    await shows(dialog, "Enter your password again");
    await dialog.getByLabel("Password").fill("wrong");
    await dialog.getByRole("button", { name: button, exact: true }).click();
    await shows(dialog, "Invalid credentials.");
    await dialog.getByLabel("Password").fill(input.password);
    await dialog.getByRole("button", { name: button, exact: true }).click();
    await dialog.waitFor({ state: "detached" });
  };

  await signIn(page, email);
  await toAccount();
  await shows(page.locator(".card", { hasText: "Passkeys" }), "No passkeys yet.");
  await page.getByRole("button", { name: "Add a passkey" }).click();
  await dialog.getByLabel("Name").fill("Ward laptop");
  await accessible(page, "adding a passkey");
  await withPassword("Add");
  await shows(mine, "Ward laptop");
  await shows(mine, "Never used.");
  await accessible(page, "the list of passkeys");
  const [credential, ...others] = await held();
  assert.equal(others.length, 0);
  assert.equal(credential.rpId, "localhost");
  assert.equal(credential.isResidentCredential, true, "it can be used alone");
  assert.ok(!Buffer.from(credential.userHandle, "base64").toString("latin1").includes("nurse"), "the handle says nothing of the person");

  await signOff(page);
  await accessible(page, "the sign-in");
  await page.getByRole("button", { name: "Use a passkey" }).click();
  await toAccount();
  await shows(mine, "Last used");
  await mine.getByRole("button", { name: "Rename Ward laptop" }).click();
  await dialog.getByLabel("Name").fill("Red laptop");
  await dialog.getByRole("button", { name: "Save" }).click();
  await shows(mine, "Red laptop");

  await signOff(page);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(input.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await shows(page.locator("main"), "Now use your passkey.");
  await accessible(page, "the second step");
  await page.getByRole("button", { name: "Use a passkey" }).click();
  await page.getByRole("navigation", { name: "Sections" }).waitFor();

  await signOff(page);
  await debug.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: false }); // a passkey alone requires user verification
  await page.getByRole("button", { name: "Use a passkey" }).click();
  await shows(page.getByRole("alert"), "No passkey was used.");
  await debug.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: true });
  await page.getByRole("button", { name: "Use a passkey" }).click();
  await toAccount();
  await mine.getByRole("button", { name: "Remove Red laptop" }).click();
  await shows(dialog, "your only second factor");
  await withPassword("Remove");
  await shows(page.locator("main"), "Passkey removed. Sign in again.");
  await page.getByRole("button", { name: "Use a passkey" }).click();
  await shows(page.getByRole("alert"), "Invalid credentials.");

  await signIn(page, email); // the password alone is enough again
  await toAccount();
  await page.getByRole("button", { name: "Set up", exact: true }).click();
  await shows(dialog, "Enter your password again to continue.");
  await dialog.getByLabel("Password").fill(input.password);
  await dialog.getByRole("button", { name: "Continue" }).click();
  await shows(dialog, "Six-digit code");
  return { base };
}, { tolerate });
