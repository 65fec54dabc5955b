// Shared fields of enrollment and patient editing: zone, diagnoses, insurance, address, expected readings.
import { getAll, get } from "../../api.js";
import { Combo } from "../../ui/combo.js";
import { Field } from "../../ui/form.js";
import { humanize } from "../../ui/format.js";
import { asProblem } from "../../ui/states.js";
import { kindNames } from "../../ui/vitals.js";
import { html, useEffect, useRef, useState } from "../../view.js";

/** @typedef {Record<string, string[]>} Errors */
/** @typedef {import("../../ui/combo.js").Option} Option */

/** Converts values with dotted names to nested objects: `address.city` is the city of the address.
 *  @param {Record<string, any>} values */
export function nested(values) {
  const body = {};
  for (const [name, value] of Object.entries(values)) {
    const parts = name.split(".");
    const last = parts.pop() ?? "";
    let at = body;
    for (const part of parts) {
      at = at[part] ??= {};
    }
    at[last] = value;
  }
  return body;
}

const home = ["America/New_York", "America/Chicago", "America/Denver", "America/Phoenix", "America/Los_Angeles", "America/Anchorage",
  "Pacific/Honolulu", "America/Puerto_Rico"];
const longName = (/** @type {string} */ zone) =>
  new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longGeneric" }).formatToParts(0)
  .find(({ type }) => type === "timeZoneName")?.value ?? "";
const zoneOption = (/** @type {string} */ zone) => ({ value: zone, text: zone.replaceAll("_", " "), more: longName(zone) });

/** Time zones with a name or time name that contains all words; US zones first. @param {string} term
 *  @returns {Promise<Option[]>} */
async function findZones(term) {
  const wanted = term.toLowerCase().split(/[\s/_]+/).filter(Boolean);
  const known = [...home, ...Intl.supportedValuesOf("timeZone").filter((zone) => !home.includes(zone))];
  const fits = (/** @type {Option} */ { text, more }) => wanted.every((word) => `${text} ${more}`.toLowerCase().includes(word));
  return (wanted.length > 0 ? known : home).map(zoneOption).filter(fits).slice(0, 12);
}

/** @param {{value?: string | null, errors: Errors}} props */
export const ZonePicker = ({ value, errors }) => html`<${Combo} label="Time zone" name="time_zone" eager find=${findZones}
  value=${value ? zoneOption(value) : null}
  placeholder="City or zone" hint="Leave blank to use the practice’s" errors=${errors} />`;

/** The normalized form of a typed code; null if malformed. The server validates it.
 *  @param {string} typed */
export function codeOf(typed) {
  const bare = typed.toUpperCase().replaceAll(".", "");
  return /^[A-Z][0-9][0-9A-Z]{1,5}$/.test(bare) ? bare.slice(0, 3) + (bare.length > 3 ? `.${bare.slice(3)}` : "") : null;
}

const codeOption = (/** @type {any} */ hit) => ({ value: hit.code, text: `${hit.code} ${hit.description}`, more: hit.synonym
  ?? undefined });
const freeOption = (/** @type {string} */ code) => ({ value: code, text: `${code} (not in the list)` });

/** Finds diagnoses by code or words. Any well-formed code is accepted, listed or not.
 *  @param {{codes: string[], errors: Errors, autofocus?: boolean}} props */
export function CodesPicker({ codes, errors, autofocus }) {
  const [initial, setInitial] = useState(/** @type {Option[] | null} */ (codes.length === 0 ? [] : null));
  useEffect(() => {
    if (codes.length > 0) {
      const known = (/** @type {any[]} */ results) =>
        codes.map((code) => codeOption(results.find((hit) => hit.code === code) ?? { code, description: "(not in the list)" }));
      get("icd10/", { codes: codes.join(","), page_size: 12 }).then(({ results }) => setInitial(known(results)),
        () => setInitial(codes.map((code) => ({ value: code, text: code }))));
    }
  }, []);
  const find = async (/** @type {string} */ term, /** @type {AbortSignal} */ signal) =>
    (await get("icd10/", { search: term, billable: true, page_size: 8 }, signal)).results.map(codeOption);
  const typed = (/** @type {string} */ term) => { const code = codeOf(term); return code ? freeOption(code) : null; };
  return initial === null ? html`<div class="field combo"><label>Diagnoses</label><div class="combo-box"></div></div>`
    : html`<${Combo} label="Diagnoses" name="icd10_codes" many find=${find} value=${initial} typed=${typed} autofocus=${autofocus}
      errors=${errors}
      placeholder="Code or words: I10, heart fail" hint="ICD-10-CM. The first code is the primary diagnosis on the claim."
        nothing="No codes match. Press Enter to use the code as typed." />`;
}

/** Reports text in a combobox that was typed but not chosen. @param {HTMLElement | null} box @param {string} name */
export function unchosenText(box, name) {
  const typed = /** @type {HTMLInputElement | null} */ (box?.querySelector(`[data-field="${name}"]`))?.value.trim();
  return typed ? { [name]: [`“${typed}” is not added yet: choose from the list or press Enter.`] } : {};
}

/** @param {{label?: string, name?: string, value?: number | null, errors: Errors, chosen?: (one: Option | null) => void,
 * autofocus?: boolean}} props */
export function PayerPicker({ label = "Payer", name = "insurance.payer_id", value = null, errors, chosen, autofocus }) {
  const list = useRef(/** @type {Promise<any[]> | null} */ (null));
  const payers = () => (list.current ??= getAll("billing/payers/"));
  const [initial, setInitial] = useState(/** @type {Option | null | undefined} */ (value === null ? null : undefined));
  const option = (/** @type {any} */ p) => ({ value: String(p.id), text: p.name, more: p.edi_payer_id ? `ID ${p.edi_payer_id}`
    : "no clearinghouse ID" });
  useEffect(() => {
    if (value !== null) {
      const plain = { value: String(value), text: `Payer ${value}` };
      payers().then((found) => setInitial(found.filter((p) => p.id === value).map(option)[0] ?? plain), () => setInitial(plain));
    }
  }, []);
  const find = async (/** @type {string} */ term) => {
    const wanted = term.toLowerCase().split(/\s+/).filter(Boolean);
    return (await payers()).filter((p) => p.is_active && wanted.every((word) => `${p.name} ${p.payer_id}`.toLowerCase().includes(word)))
      .slice(0, 12).map(option);
  };
  return initial === undefined ? html`<div class="field combo"><label>${label}</label><div class="combo-box"></div></div>`
    : html`<${Combo} label=${label} name=${name} eager find=${find} value=${initial} chosen=${chosen} errors=${errors}
      autofocus=${autofocus}
      placeholder="Name"
      nothing="No payers match. Billing staff can add payers." />`;
}

const genders = /** @type {[string, string][]} */ (["female", "male", "other", "unknown"].map((gender) => [gender, humanize(gender)]));
const relations = /** @type {[string, string][]} */ ([["self", "Self"], ["spouse", "Spouse"], ["child", "Child"],
  ["other", "Other"]]);

/** One insurance; prefix is its path in the patient.
 *  @param {{prefix: string, of: any, errors: Errors, label: string, autofocus?: boolean}} props */
function Coverage({ prefix, of, errors, label, autofocus }) {
  const [relationship, setRelationship] = useState(of?.relationship ?? "self");
  const who = of?.subscriber ?? {};
  const named = (/** @type {string} */ name) => `${prefix}.${name}`;
  return html`<div class="fields">
      <${PayerPicker} label=${label} name=${named("payer_id")} value=${of?.payer_id ?? null} errors=${errors} autofocus=${autofocus} />
      <${Field} label="Member ID" name=${named("member_id")} value=${of?.member_id} maxlength="50" autocomplete="off" errors=${errors} />
      <${Field} label="Group number" name=${named("group_number")} value=${of?.group_number} maxlength="50" autocomplete="off"
        errors=${errors} />
      <${Field} label="Patient’s relationship to subscriber" name=${named("relationship")} kind="select" options=${relations}
        value=${relationship}
        onChange=${(event) => setRelationship(event.target.value)} errors=${errors} />
    </div>
    ${relationship !== "self" && html`<fieldset class="fields"><legend>Subscriber</legend>
      <${Field} label="Subscriber’s first name" name=${named("subscriber.first_name")} value=${who.first_name} errors=${errors} />
      <${Field} label="Subscriber’s last name" name=${named("subscriber.last_name")} value=${who.last_name} errors=${errors} />
      <${Field} label="Subscriber’s date of birth" name=${named("subscriber.date_of_birth")} kind="date" value=${who.date_of_birth}
        errors=${errors} />
      <${Field} label="Subscriber’s gender" name=${named("subscriber.gender")} kind="select" options=${genders}
        value=${who.gender ?? "unknown"} errors=${errors} />
    </fieldset>`}`;
}

/** Primary and secondary insurance, or self-pay. @param {{insurance: any, errors: Errors, autofocus?: boolean}} props */
export function InsuranceFields({ insurance, errors, autofocus }) {
  const [isSelfPay, setSelfPay] = useState(Boolean(insurance?.self_pay));
  return html`<${Field} label="No insurance (self-pay)" name="insurance.self_pay" kind="checkbox" value=${isSelfPay}
    onChange=${(event) => setSelfPay(event.target.checked)} errors=${errors} />
    ${!isSelfPay && html`<${Coverage} prefix="insurance" of=${insurance} label="Payer" errors=${errors} autofocus=${autofocus} />
      <details open=${Boolean(insurance?.secondary)}><summary>Secondary insurance</summary>
        <${Coverage} prefix="insurance.secondary" of=${insurance?.secondary} label="Secondary payer" errors=${errors} /></details>`}`;
}

const number = (/** @type {any} */ value) => (value === null || value === undefined || value === "" ? null : Number(value));

/** @param {any} c a coverage from the form */
const coverageOf = (c) => ({
  payer_id: number(c?.payer_id), member_id: c?.member_id ?? null, group_number: c?.group_number ?? null, relationship: c?.relationship
    ?? null,
  subscriber: c?.relationship && c.relationship !== "self" ? c.subscriber : null,
});

/** The insurance of the form in the server's format; null for none. @param {any} insurance of nested values */
export function insuranceOf(insurance) {
  const blank = (/** @type {any} */ c) => c.payer_id === null && c.member_id === null && c.group_number === null && c.subscriber === null;
  const first = coverageOf(insurance);
  const second = coverageOf(insurance?.secondary);
  if (insurance?.self_pay) {
    return { ...coverageOf(null), secondary: null, self_pay: true };
  }
  return blank(first) && blank(second) ? null : { ...first, secondary: blank(second) ? null : second, self_pay: null };
}

/** @param {{address: any, errors: Errors}} props */
export const AddressFields = ({ address: a, errors }) => html`
  <${Field} label="Street" name="address.line1" value=${a?.line1} autocomplete="off" errors=${errors} />
  <${Field} label="Apartment" name="address.line2" value=${a?.line2} autocomplete="off" errors=${errors} />
  <${Field} label="City" name="address.city" value=${a?.city} autocomplete="off" errors=${errors} />
  <${Field} label="State" name="address.state" value=${a?.state} autocomplete="off" errors=${errors} />
  <${Field} label="ZIP" name="address.zip" value=${a?.zip} autocomplete="off" errors=${errors} />`;

/** The address of the form; null for none. @param {any} address of nested values */
export const addressOf = (address) => (Object.values(address ?? {}).some((part) => part !== null) ? address : null);

const frequencies = /** @type {[string, string][]} */ ([["", "Not expected"], ["1", "Once a day"], ["2", "Twice a day"],
  ["3", "Three times a day"], ["4", "Four times a day"], ["6", "Six times a day"], ["8", "Eight times a day"]]);

/** The expected readings. @param {{schedule: any, errors: Errors}} props */
export function ScheduleFields({ schedule, errors }) {
  const [mode, setMode] = useState(schedule ? "own" : "usual");
  const choices = (/** @type {string} */ kind) => {
    const is = String(schedule?.[kind]?.per_day ?? "");
    return frequencies.some(([times]) => times === is) ? frequencies : [...frequencies, [is, `${is} times a day`]];
  };
  return html`<${Field} label="Readings expected" name="schedule_mode" kind="select" value=${mode}
    onChange=${(event) => setMode(event.target.value)}
      options=${[["usual", "Once a day from each device"], ["own", "As set below"]]} errors=${errors} />
    ${mode === "own" && html`<div class="fields">${Object.entries(kindNames).map(([kind, name]) => html`
      <${Field} key=${kind} label=${name} name=${`monitoring_schedule.${kind}`} kind="select" options=${choices(kind)}
        value=${String(schedule?.[kind]?.per_day ?? "")}
        hint=${schedule?.[kind]?.days ? `On ${schedule[kind].days.map(humanize).join(", ")}` : undefined} errors=${errors} />`)}</div>`}`;
}

/** @param {string} mode @param {any} chosen times by kind @param {any} was the previous schedule; its days are kept */
export const scheduleOf = (mode, chosen, was) => (mode !== "own" ? null
  : Object.fromEntries(Object.entries(chosen ?? {}).filter(([kind, times]) => times !== null || was?.[kind])
    .map(([kind, times]) =>
      [kind, times === null ? null : { per_day: Number(times), ...(was?.[kind]?.days ? { days: was[kind].days } : {}) }])));

/** Runs several requests and throws all their errors under the form's field names. Completed requests are not repeated.
 *  @param {{key: string, names?: Record<string, string>, act: () => Promise<any>}[]} parts @param {Set<string>} done */
export async function runAll(parts, done) {
  /** @type {Errors} */
  const fields = {};
  let other = null;
  for (const { key, names = {}, act } of parts.filter((part) => !done.has(part.key))) {
    try {
      await act();
      done.add(key);
    } catch (error) {
      const problem = asProblem(error);
      for (const [field, messages] of Object.entries(problem.fields)) {
        fields[names[field] ?? field] = messages;
      }
      other = Object.keys(problem.fields).length === 0 ? problem : other ?? problem;
    }
  }
  if (other) {
    throw Object.assign(other, { fields: Object.keys(other.fields).length === 0 && Object.keys(fields).length > 0
      ? { ...fields, non_field_errors: [other.message] } : fields });
  }
}
