// Enrolment: who is not wholly enrolled yet, and the path on which somebody becomes so, in steps that may be done in any order.
import { html } from "../view.js";
import { Path } from "./enrolment/path.js";
import { Unfinished } from "./enrolment/unfinished.js";

/** id is whose path it is, fresh says that somebody new is enrolled; without either all unfinished ones are shown.
 *  @param {{id?: string, fresh?: boolean, step?: string}} props */
export const Enrolment = ({ id, fresh, step }) => (id || fresh
  ? html`<${Path} key=${id ?? "new"} id=${id ?? null} step=${step} />` : html`<${Unfinished} />`);
