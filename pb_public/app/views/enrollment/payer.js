// The payer step: insurance or self-pay.
import { patch } from "../../api.js";
import { Form } from "../../ui/form.js";
import { html } from "../../view.js";
import { InsuranceFields, insuranceOf, nested } from "./fields.js";

/** @param {import("./steps.js").StepProps} props */
export const Payer = ({ patient, submit, saved }) => html`<${Form} submit=${submit} done=${() => saved()}
  send=${(values) => patch(`patients/${patient.id}/`, { insurance: insuranceOf(nested(values).insurance) })}>${(errors) => html`
  <${InsuranceFields} insurance=${patient.insurance} errors=${errors} />`}</${Form}>`;
