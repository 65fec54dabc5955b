// Names of colleagues. The API identifies many users by email only; staff use names.
import { getAll } from "./api.js";
import { can } from "./permissions.js";
import { me } from "./session.js";
import { signal } from "./view.js";

/** Staff names by email. */
const names = signal(/** @type {Map<string, string>} */ (new Map()));
/** The user id for which the names were loaded. */
let loadedFor = 0;

/** @param {string} email @returns {string} the email until the names are loaded */
function nameOf(email) {
  const id = me.value?.id ?? 0;
  const loaded = names.value;
  if (loadedFor !== id && can("readStaff")) {
    loadedFor = id;
    getAll("users/staff/").then((found) => { // on failure the email is shown
      if (loadedFor === id) {
        names.value = new Map(found.map((one) => [one.email, one.name]));
      }
    }, () => {});
  }
  return (loadedFor === id && loaded.get(email)) || email;
}

/** A colleague's name, or "You". @param {string | null | undefined} email @param {string | null | undefined} [name] */
export const colleague = (email, name) =>
  (email && email === me.value?.email ? "You" : email === "system" ? "Vigil" : name || (email ? nameOf(email) : ""));

/** The same in the middle of a sentence. @param {string | null | undefined} email @param {string | null | undefined} [name] */
export const colleagueInSentence = (email, name) => colleague(email, name).replace(/^You$/, "you");
