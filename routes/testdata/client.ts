// A program as somebody would write it against the contract: the types come from openapi.yaml, the client is thirty lines.
import type { paths } from "./contract";

type Method = "get" | "post" | "put" | "patch" | "delete";
type Body<O> = O extends { requestBody: { content: { "application/json": infer B } } } ? B : undefined;
type Query<O> = O extends { parameters: { query?: infer Q } } ? Q : undefined;
type Answer<O> = O extends { responses: infer R }
  ? { [S in keyof R]: S extends 200 | 201 ? (R[S] extends { content: { "application/json": infer A } } ? A : never) : never }[keyof R]
  : never;

async function call<P extends keyof paths, M extends Method & keyof paths[P]>(
  method: M,
  path: P,
  options: { query?: Query<paths[P][M]>; body?: Body<paths[P][M]>; token?: string } = {},
): Promise<Answer<paths[P][M]>> {
  const query = new URLSearchParams(options.query as Record<string, string> | undefined);
  const answer = await fetch(`${path}?${query}`, {
    method: method.toUpperCase(),
    headers: { "Content-Type": "application/json", ...(options.token ? { Authorization: `Bearer ${options.token}` } : {}) },
    body: options.body === undefined ? undefined : JSON.stringify(options.body),
  });
  if (!answer.ok) throw new Error(String(answer.status));
  return (await answer.json()) as Answer<paths[P][M]>;
}

export async function firstReading(email: string, password: string): Promise<string> {
  const { access: token } = await call("post", "/api/v1/auth/login/", { body: { email, password } });
  const patient = await call("post", "/api/v1/patients/", {
    token,
    body: { first_name: "Ada", last_name: "Lovelace", date_of_birth: "1955-12-10", gender: "female" },
  });
  const reading = await call("post", "/api/v1/ingestion/blood-pressure/", {
    token,
    body: { patient_id: patient.id, systolic: 128, diastolic: 82, measured_at: new Date().toISOString() },
  });
  const feed = await call("get", "/api/v1/dashboard/activity/", { token, query: { limit: 5, severity: "critical" } });
  const messages: string[] = feed.results.map((entry) => entry.message);
  const series = await call("get", "/api/v1/dashboard/stats/processing/", { token });
  const mean: number | null = series.results[0]?.avg_ms ?? null;
  const alerts = await call("get", "/api/v1/alerts/", { token });
  const level: string | undefined = alerts.results[0]?.level;

  // The types refuse what the contract does not have.
  // @ts-expect-error there is no such path
  await call("get", "/api/v1/nothing/", { token });
  // @ts-expect-error a gender is one of four words
  await call("post", "/api/v1/patients/", { token, body: { first_name: "A", last_name: "B", date_of_birth: "1955-12-10", gender: "none" } });
  // @ts-expect-error a severity of the feed is one of four words
  await call("get", "/api/v1/dashboard/activity/", { token, query: { severity: "huge" } });
  // @ts-expect-error an observation has no such field
  void reading.colour;
  return [reading.id, ...messages, String(mean), level ?? ""].join(" ");
}
