// Enrollment: the list of unfinished enrollments, and the steps of one, in any order.
import { html } from "../view.js";
import { Path } from "./enrolment/path.js";
import { Unfinished } from "./enrolment/unfinished.js";

/** id is the patient, fresh starts a new enrollment; without either the unfinished ones are listed.
 *  @param {{id?: string, fresh?: boolean, step?: string}} props */
export const Enrolment = ({ id, fresh, step }) => (id || fresh
  ? html`<${Path} key=${id ?? "new"} id=${id ?? null} step=${step} />` : html`<${Unfinished} />`);
