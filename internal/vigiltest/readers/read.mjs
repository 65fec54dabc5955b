// Signs in by SMART Backend Services, reads with fhir-kit-client, exports with Medplum's client, and prints the results as
// one line of JSON.
import { createPrivateKey, randomUUID, sign } from "node:crypto";
import { Client } from "fhir-kit-client";

globalThis.WebSocket ??= class {}; // missing in Node 20, and referenced when Medplum's client loads
const { MedplumClient } = await import("@medplum/core");

const [server, id, kid, key, patient] = process.argv.slice(2);
const baseUrl = `${server}/fhir/R4`;
const kit = new Client({ baseUrl });

const smart = await (await fetch(`${baseUrl}/.well-known/smart-configuration`)).json();
const seen = await kit.smartAuthMetadata();

const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const claims = { iss: id, sub: id, aud: smart.token_endpoint, jti: randomUUID(), exp: Math.floor(Date.now() / 1000) + 240 };
const body = `${encode({ alg: "ES384", typ: "JWT", kid })}.${encode(claims)}`;
const signature = sign("sha384", Buffer.from(body), { key: createPrivateKey(key), dsaEncoding: "ieee-p1363" });
const granted = await fetch(smart.token_endpoint, {
  method: "POST",
  body: new URLSearchParams({
    grant_type: "client_credentials",
    scope: "system/*.rs",
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    client_assertion: `${body}.${signature.toString("base64url")}`,
  }),
});
const { access_token: token } = await granted.json();
kit.bearerToken = token;

// Follows the page links, as a client does.
const readings = [];
let pages = 0;
let bundle = await kit.search({ resourceType: "Observation", searchParams: { patient, _count: 2, _sort: "date" } });
for (; bundle; bundle = await kit.nextPage({ bundle })) {
  pages++;
  readings.push(...(bundle.entry ?? []).map((entry) => entry.resource.id));
}
const one = await kit.read({ resourceType: "Observation", id: readings[0] });
const statement = await kit.capabilityStatement();
const last = await kit.operation({ resourceType: "Observation", name: "$lastn", method: "get", input: { patient, category: "vital-signs" } });
let refused = 0;
await kit.read({ resourceType: "Patient", id: "nobody" }).catch((error) => { refused = error.response?.status; });

const medplum = new MedplumClient({ baseUrl: server, fhirUrlPath: "fhir/R4", fetch });
medplum.setAccessToken(token);
const manifest = await medplum.bulkExport("", "Patient,Observation", undefined, { pollStatusOnAccepted: true, pollStatusPeriod: 100 });
const lines = {};
for (const file of manifest.output) {
  const text = await (await medplum.download(file.url)).text();
  lines[file.type] = (lines[file.type] ?? 0) + text.trimEnd().split("\n").map((line) => JSON.parse(line)).filter((resource) => resource.resourceType === file.type).length;
}
const since = await medplum.bulkExport("Patient", "Observation", manifest.transactionTime, { pollStatusOnAccepted: true, pollStatusPeriod: 100 });
console.log(JSON.stringify({
  tokenURL: seen.tokenUrl?.href ?? String(seen.tokenUrl), readings: readings.length, distinct: new Set(readings).size, pages, one: one.resourceType,
  last: last.entry?.length ?? 0, software: statement.fhirVersion, refused, patients: lines.Patient, observations: lines.Observation, since: since.output.length,
}));
