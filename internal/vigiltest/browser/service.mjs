// Requests that the scripts send to the service next to the browser, as other users and devices: calls of a signed-in user,
// and gateway readings.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { base, input } from "./browser.mjs";

const json = { "Content-Type": "application/json" };

// signedIn returns a function that calls the service as this user, with a method, a path below /api/v1/ and a body.
export async function signedIn(email) {
  const { access } = await call("POST", "auth/login/", { email, password: input.password });
  return (method, path, body) => call(method, path, body, { Authorization: `Bearer ${access}` });
}

async function call(method, path, body, headers) {
  const answer = await fetch(`${base}/api/v1/${path}`, { method, headers: { ...json, ...headers }, body: body && JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
  return answer.json();
}

// sendReading sends a blood pressure from the gateway, signed with INPUT's secret.
export async function sendReading(device, patient, values, at = new Date()) {
  const body = JSON.stringify({
    event_type: "measurement.created", device_id: device, patient_id: patient, measurement_type: "blood_pressure", values, unit: "mmHg",
    timestamp: at.toISOString(),
  });
  const answer = await fetch(`${base}/api/v1/gateway/webhook/`, { method: "POST", body, headers: {
    ...json, "X-Gateway-Timestamp": String(Math.floor(Date.now() / 1000)),
    "X-Gateway-Signature": `sha256=${createHmac("sha256", input.secret).update(body).digest("hex")}`,
  } });
  assert.equal(answer.status, 200, `a reading was refused: ${await answer.text()}`);
}
