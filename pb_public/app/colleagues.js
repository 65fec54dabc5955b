// What colleagues are called. Much of what the service tells names them by email; people know each other by name.
import { all } from "./api.js";
import { can } from "./can.js";
import { me } from "./session.js";
import { signal } from "./view.js";

/** The names of the staff by email. */
const names = signal(/** @type {Map<string, string>} */ (new Map()));
/** For whom they were asked. */
let asked = 0;

/** @param {string} email @returns {string} the email itself until the name is there */
function nameOf(email) {
  const id = me.value?.id ?? 0;
  const known = names.value;
  if (asked !== id && can("readStaff")) {
    asked = id;
    all("users/staff/").then((found) => { // unless it fails: the email says it as well
      if (asked === id) {
        names.value = new Map(found.map((one) => [one.email, one.name]));
      }
    }, () => {});
  }
  return (asked === id && known.get(email)) || email;
}

/** A colleague's name, or "You". @param {string | null | undefined} email @param {string | null | undefined} [name] */
export const colleague = (email, name) =>
  (email && email === me.value?.email ? "You" : email === "system" ? "Vigil" : name || (email ? nameOf(email) : ""));

/** The same within a sentence. @param {string | null | undefined} email @param {string | null | undefined} [name] */
export const byWhom = (email, name) => colleague(email, name).replace(/^You$/, "you");
