// Enrollment: the list of unfinished enrollments, and the steps of one, in any order.
import { html } from "../view.js";
import { Path } from "./enrollment/path.js";
import { Unfinished } from "./enrollment/unfinished.js";

/** id is the patient, fresh starts a new enrollment; without either the unfinished ones are listed.
 *  @param {{id?: string, fresh?: boolean, step?: string}} props */
export const Enrollment = ({ id, fresh, step }) => (id || fresh
  ? html`<${Path} key=${id ?? "new"} id=${id ?? null} step=${step} />` : html`<${Unfinished} />`);
