// The console's steps of an enrollment. Some combine several of the server's steps.
/** @typedef {{code: string, field: string | null, detail: string, effect: string, stops: string | null}} Item */
/** @typedef {{step: string, state: string, missing: Item[], hints: Item[]}} StepStatus */
/** @typedef {{state: string, done: number, of: number, missing: number, stops: string[], steps: StepStatus[]}} Standing */
/** @typedef {{patient: any, standing: Standing | null, submit: string, saved: (id?: string) => void, changed: () => void}} StepProps
 *  saved continues to the next step, changed stays; id is that of a new patient */
/** @typedef {{step: string, of: string[], name: string, about: string}} Step */

/** @type {Step[]} */
export const steps = [
  { step: "person", of: ["person"], name: "Patient", about: "Name, date of birth, phone, time zone" },
  { step: "consent", of: ["consent"], name: "Consent", about: "To remote monitoring" },
  { step: "payer", of: ["payer"], name: "Payer", about: "Insurance, member ID, subscriber" },
  { step: "order", of: ["order", "team", "diagnoses"], name: "Order and diagnosis", about: "Provider, order, care team, ICD-10" },
  { step: "thresholds", of: ["thresholds"], name: "Thresholds", about: "The practice’s, or a template" },
  { step: "device", of: ["device", "schedule"], name: "Device and teaching", about: "Device, schedule, setup" },
  { step: "reading", of: ["reading"], name: "First reading", about: "Arrives from the device" },
];

/** The console's step that contains a step of the server. @param {string} name */
export const stepWith = (name) => steps.find((one) => one.of.includes(name)) ?? steps[0];

/** The status of a console step: the worst state of its parts. @param {Standing | null} standing @param {Step} step */
export function statusOf(standing, step) {
  const parts = (standing?.steps ?? []).filter((one) => step.of.includes(one.step));
  const state = ["missing", "waiting"].find((one) => parts.some((part) => part.state === one)) ?? (standing ? "done" : "later");
  return { state, missing: parts.flatMap((part) => part.missing), hints: parts.flatMap((part) => part.hints) };
}

/** The next step that is not done, continuing from the start after the last one; the same step if all are done.
 *  @param {Standing} standing @param {string} from */
export function nextOf(standing, from) {
  const at = steps.findIndex((one) => one.step === from);
  const around = [...steps.slice(at + 1), ...steps.slice(0, at)];
  return around.find((one) => statusOf(standing, one).state !== "done")?.step ?? from;
}

/** The step to open by default: the first with missing items, otherwise the first that is waiting. @param {Standing} standing */
export const firstMissing = (standing) =>
  (steps.find((one) => statusOf(standing, one).state === "missing") ?? steps.find((one) => statusOf(standing, one).state === "waiting")
    ?? steps[0]).step;
