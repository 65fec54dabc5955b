// The steps of an enrolment as people take them: some of the service's belong together, since they are asked of the same person.
/** @typedef {{code: string, field: string | null, detail: string, effect: string, stops: string | null}} Item */
/** @typedef {{step: string, state: string, missing: Item[], hints: Item[]}} Told */
/** @typedef {{state: string, done: number, of: number, missing: number, stops: string[], steps: Told[]}} Standing */
/** @typedef {{patient: any, standing: Standing | null, submit: string, saved: (id?: string) => void, changed: () => void}} StepProps
 *  saved goes on to the next step, changed stays; id is that of somebody new */
/** @typedef {{step: string, of: string[], name: string, about: string}} Step */

/** @type {Step[]} */
export const steps = [
  { step: "person", of: ["person"], name: "Patient", about: "Name, birth date, phone, zone" },
  { step: "consent", of: ["consent"], name: "Consent", about: "To remote monitoring" },
  { step: "payer", of: ["payer"], name: "Payer", about: "Insurance, member id, whose it is" },
  { step: "order", of: ["order", "team", "diagnoses"], name: "Order and diagnosis", about: "Provider, order, care team, ICD-10" },
  { step: "thresholds", of: ["thresholds"], name: "Thresholds", about: "The practice’s, or a template" },
  { step: "device", of: ["device", "schedule"], name: "Device and teaching", about: "Which, how often, set-up shown" },
  { step: "reading", of: ["reading"], name: "First reading", about: "Comes from the device" },
];

/** The step in which the service's is done. @param {string} name */
export const stepWith = (name) => steps.find((one) => one.of.includes(name)) ?? steps[0];

/** What is told of a step of ours: its state is the worst of what it is made of. @param {Standing | null} standing @param {Step} step */
export function toldOf(standing, step) {
  const parts = (standing?.steps ?? []).filter((one) => step.of.includes(one.step));
  const state = ["missing", "waiting"].find((one) => parts.some((part) => part.state === one)) ?? (standing ? "done" : "later");
  return { state, missing: parts.flatMap((part) => part.missing), hints: parts.flatMap((part) => part.hints) };
}

/** The next step that is not done, from one on; at the end the first that was passed over; the same when there is none.
 *  @param {Standing} standing @param {string} from */
export function nextOf(standing, from) {
  const at = steps.findIndex((one) => one.step === from);
  const around = [...steps.slice(at + 1), ...steps.slice(0, at)];
  return around.find((one) => toldOf(standing, one).state !== "done")?.step ?? from;
}

/** Where to go on when nobody says where: at the first thing missing, else at what is waited for. @param {Standing} standing */
export const firstMissing = (standing) =>
  (steps.find((one) => toldOf(standing, one).state === "missing") ?? steps.find((one) => toldOf(standing, one).state === "waiting")
    ?? steps[0]).step;
