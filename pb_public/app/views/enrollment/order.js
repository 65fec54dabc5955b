// The order step: ordering provider, care team, order and diagnoses.
import { getAll, get, patch, post, Problem, put } from "../../api.js";
import { can, roleNames } from "../../permissions.js";
import { Combo } from "../../ui/combo.js";
import { Field, Form } from "../../ui/form.js";
import { calendarDate } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { StaffPicker } from "../../ui/staff_picker.js";
import { localInput } from "../../ui/time.js";
import { html, useRef } from "../../view.js";
import { CodesPicker, runAll, unchosenText } from "./fields.js";

export const teamRoles = ["provider", "nurse", "ma", "clinical_manager"];

/** The selected members, each with the previous role. @param {string[]} ids @param {any[]} before */
export const membersOf = (ids, before) =>
  ids.map((id) => ({ user_id: Number(id), role: before.find((m) => String(m.user_id) === id)?.role ?? undefined }));

/** @param {import("./steps.js").StepProps} props */
export function Order({ patient, submit, saved }) {
  const found = useLoad(async (signal) => {
    const [team, orders] = await Promise.all([get(`patients/${patient.id}/care-team/`,
      {}, signal), getAll(`patients/${patient.id}/orders/`)]);
    return { team, orders };
  }, [patient.id]);
  return html`<${Loaded} from=${found}>${({ team, orders }) => html`<${OrderForm} patient=${patient} team=${team} orders=${orders}
    submit=${submit} saved=${saved} />`}</${Loaded}>`;
}

/** @param {{patient: any, team: any, orders: any[], submit: string, saved: () => void}} props */
function OrderForm({ patient, team, orders, submit, saved }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const done = useRef(new Set());
  const latest = (/** @type {string} */ kind) => orders.find((one) => one.kind === kind);
  const to = `patients/${patient.id}/`;
  const send = async (/** @type {any} */ v) => {
    const left = unchosenText(box.current, "icd10_codes");
    if (Object.keys(left).length > 0) {
      throw new Problem(400, { field_errors: left });
    }
    const provider = v.primary_provider_id ? Number(v.primary_provider_id) : null;
    const ids = v.members ?? [];
    const same = ids.join() === team.members.map((/** @type {any} */ m) => m.user_id).join();
    const record = (/** @type {string} */ kind, /** @type {string} */ prefix, /** @type {Record<string, any>} */ more = {}) => ({
      key: `${kind} ${v[`${prefix}.dated`]}`, names: { dated: `${prefix}.dated`, text: `${prefix}.text`, author_id: "primary_provider_id" },
      act: () => post(`${to}orders/`, { kind, dated: v[`${prefix}.dated`], ...(provider ? { author_id: provider } : {}), ...more }),
    });
    done.current.delete("patient");
    done.current.delete("team");
    await runAll([
      { key: "patient", act: () => patch(to, { primary_provider_id: provider, icd10_codes: v.icd10_codes }) },
      ...(same || !can("changeCareTeam") ? []
        : [{ key: "team", act: () => put(`${to}care-team/`, { members: membersOf(ids, team.members) }) }]),
      ...(v["order.dated"] ? [record("rpm_order", "order", { text: v["order.text"] })] : []),
      ...(v["visit.dated"] ? [record("established_visit", "visit")] : []),
    ], done.current);
  };
  return html`<div ref=${box}><${Form} submit=${submit} send=${send} done=${() => saved()}>${(errors) => html`
    <div class="fields">
      <${StaffPicker} label="Ordering provider" name="primary_provider_id" by="id" roles=${["provider"]}
        value=${patient.primary_provider_id} hint="Responsible for the patient; appears on the claim" errors=${errors} />
      ${can("changeCareTeam") ? html`<${Members} members=${team.members} errors=${errors} />`
        : html`<${Field} label="Care team" name="team" readonly value=${team.members.map((/** @type {any} */ m) => m.name).join(", ")
          || "Not assigned"}
          hint="Set by providers and managers" />`}
    </div>
    <div class="fields">
      <${Dated} label="Monitoring order date" name="order.dated" on=${latest("rpm_order")} errors=${errors} />
      <${Dated} label="Last established-patient visit" name="visit.dated" on=${latest("established_visit")} errors=${errors} />
    </div>
    <${CodesPicker} codes=${patient.icd10_codes} errors=${errors} />
    <${Field} label="Order details" name="order.text" maxlength="4000"
      hint="For example: blood pressure, daily. Saved with the order date." errors=${errors} />`}
  </${Form}></div>`;
}

/** Selects the care team from the staff, starting with its members.
 *  @param {{members: any[], errors?: Record<string, string[]>, label?: string}} props */
export function Members({ members, errors, label = "Care team" }) {
  const list = useRef(/** @type {Promise<any[]> | null} */ (null));
  const staff = () => (list.current ??= getAll("users/staff/"));
  const find = async (/** @type {string} */ term) => {
    const wanted = term.toLowerCase().split(/\s+/).filter(Boolean);
    return (await staff()).filter((one) => teamRoles.includes(one.role)
      && wanted.every((word) => `${one.name} ${roleNames[one.role]}`.toLowerCase().includes(word)))
      .map((one) => ({ value: String(one.id), text: one.name, more: roleNames[one.role] }));
  };
  return html`<${Combo} label=${label} name="members" many eager find=${find}
    value=${members.map((m) => ({ value: String(m.user_id), text: m.name }))} errors=${errors}
    placeholder="Name or role" hint="Notified of this patient’s alerts" nothing="No one matches." />`;
}

/** A date field with a Today button; shows the recorded date.
 *  @param {{label: string, name: string, on: any, errors: Record<string, string[]>}} props */
function Dated({ label, name, on, errors }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const today = () => {
    const field = /** @type {HTMLInputElement | null} */ (box.current?.querySelector("input") ?? null);
    if (field) {
      field.value = localInput().slice(0, 10);
      field.dispatchEvent(new Event("input", { bubbles: true }));
      field.focus();
    }
  };
  return html`<div class="with-words" ref=${box}>
    <${Field} label=${label} name=${name} kind="date" max=${localInput().slice(0, 10)}
      hint=${on ? `On record: ${calendarDate(on.dated)}. You can add a later one.` : undefined} errors=${errors} />
    <button type="button" aria-label=${`${label}: today`} onClick=${today}>Today</button></div>`;
}
