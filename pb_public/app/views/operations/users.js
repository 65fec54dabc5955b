// User accounts: an administrator creates, edits and unlocks them.
import { get, patch, post, Problem, remove } from "../../api.js";
import { can } from "../../permissions.js";
import { me } from "../../session.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { ago, dateTime } from "../../ui/format.js";
import { PatientPicker } from "../../ui/patient_picker.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { Facts, List } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { useQuery } from "../../query.js";
import { ReauthField, useReauth } from "../reauth.js";
import { html, useState } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["User"]} User */
/** @typedef {{id: string, name: string, description: string}} Role */

export function Users() {
  const roles = useLoad((signal) => get("auth/roles/", {}, signal), []);
  return html`<${Loaded} from=${roles}>${(data) => html`<${Accounts} roles=${data.roles} />`}</${Loaded}>`;
}

/** @param {{roles: Role[]}} props */
function Accounts({ roles }) {
  const [filters, setFilters] = useQuery({ search: "", role: "", is_active: "" }, ["search"]);
  const [revision, setRevision] = useState(0);
  const [open, setOpen] = useState(/** @type {User | "new" | null} */ (null));
  const names = /** @type {[string, string][]} */ (roles.map((role) => [role.id, role.name]));
  const nameOf = Object.fromEntries(names);
  const changed = () => setRevision((n) => n + 1);
  return html`<div class="bar-of-acts"><details><summary>Role permissions</summary><${Facts} of=${roles.map((role) =>
    [role.name, role.description])} /></details>
      ${can("manageUsers") && html`<button class="main" onClick=${() => setOpen("new")}>Add a user</button>`}</div>
    <div class="filters" role="search" aria-label="Filter the users">
      <${Field} label="Name or email" name="search" kind="search" value=${filters.search} onChange=${(event) =>
        setFilters({ search: event.target.value.trim() })} />
      <${Field} label="Role" name="role" kind="select" value=${filters.role} options=${[["", "All roles"], ...names]} onChange=${(event) =>
        setFilters({ role: event.target.value })} />
      <${Field} label="Show" name="is_active" kind="select" value=${filters.is_active} options=${[["", "Active and inactive"],
        ["true", "Active"], ["false", "Inactive"]]} onChange=${(event) => setFilters({ is_active: event.target.value })} />
    </div>
    <${List} name="" path="users/" query=${filters} turn=${revision} ordering="last_name" caption="Users" nothing="No users match"
      open=${setOpen}
      columns=${columns(nameOf)} />
    ${open === "new" && html`<${NewUser} names=${names} close=${() => setOpen(null)} done=${changed} />`}
    ${open !== null && open !== "new" && html`<${OneUser} user=${open} names=${names} close=${() => setOpen(null)}
      changed=${(next) => { setOpen(next); changed(); }} />`}`;
}

/** @param {Record<string, string>} nameOf @returns {import("../../ui/table.js").Column[]} */
const columns = (nameOf) => [
  { name: "name", head: "Name", order: "last_name", cell: (user) => `${user.last_name}, ${user.first_name}` },
  { name: "email", head: "Email", order: "email" },
  { name: "role", head: "Role", order: "role", cell: (user) => nameOf[user.role] ?? user.role },
  { name: "is_2fa_enabled", head: "Second factor", cell: (user) => factorsOf(user) },
  { name: "last_login", head: "Last sign-in", order: "last_login", cell: (user) => ago(user.last_login) },
  { name: "is_active", head: "State", cell: (user) => stateOf(user) },
];

/** @param {User} user */
const factorsOf = (user) => (user.is_2fa_enabled || user.has_passkeys ? "On" : "Off");

/** @param {User} user */
const isLocked = (user) => user.locked_until !== null && Date.parse(user.locked_until) > Date.now();
/** @param {User} user */
const stateOf = (user) => (isLocked(user) ? html`<${Badge} of="warning" text=${`Locked until ${dateTime(user.locked_until)}`} />`
  : html`<${Badge} of=${user.is_active ? "online" : ""} text=${user.is_active ? "Active" : "Inactive"} />`);

/** @param {{names: [string, string][], close: () => void, done: () => void}} props */
function NewUser({ names, close, done }) {
  const [role, setRole] = useState("nurse");
  const reauth = useReauth("current_password");
  return html`<${Dialog} title="Add a user" close=${close}>
    <${Form} submit="Add" cancel=${close} send=${reauth.wrap((values, password) =>
      post("auth/register/", { ...values, ...password }))}
      done=${() => { toast("User added. They must change the password at first sign-in."); close(); done(); }}>${(errors) => html`
      <div class="fields">
        <${Field} label="First name" name="first_name" maxlength="100" errors=${errors} />
        <${Field} label="Last name" name="last_name" maxlength="100" errors=${errors} /></div>
      <${Field} label="Email" name="email" kind="email" autocomplete="off" errors=${errors} />
      <${Field} label="Temporary password" name="password" kind="password" autocomplete="new-password"
        hint="At least 12 characters. They set their own at first sign-in." errors=${errors} />
      <${Field} label="Role" name="role" kind="select" value=${role} options=${names} onChange=${(event) => setRole(event.target.value)}
        errors=${errors} />
      ${role === "patient" && html`<${PatientPicker} label="Portal patient" name="patient_id"
        errors=${errors} />`}
      ${role === "provider" && html`<${Field} label="NPI" name="npi" inputmode="numeric" errors=${errors} />`}
      <${Field} label="Phone" name="phone" kind="tel" errors=${errors} />
      <${ReauthField} reauth=${reauth} errors=${errors} />`}
    </${Form}>
  </${Dialog}>`;
}

/** @param {{user: User, names: [string, string][], close: () => void, changed: (user: User) => void}} props */
function OneUser({ user, names, close, changed }) {
  const manage = can("manageUsers");
  const reauth = useReauth("current_password");
  return html`<${Dialog} wide title=${`${user.first_name} ${user.last_name}`} close=${close}>
    <${Facts} of=${[["Email", user.email], ["Role", names.find(([id]) => id === user.role)?.[1]], ["State", stateOf(user)],
      ["Second factor", factorsOf(user)], ["Joined", dateTime(user.date_joined)],
      ["Last sign-in", dateTime(user.last_login)], ["NPI", user.npi], ["Phone", user.phone], ["Time zone", user.time_zone]]} />
    ${manage && html`<${Acts} user=${user} changed=${changed} />
      <h3>Edit</h3>
      <${Form} submit="Save" send=${reauth.wrap((values, password) =>
        patch(`users/${user.id}/`, { ...values, ...password }))}
        done=${(answer) => { toast("Saved."); changed(answer); }}>${(errors) => html`<div class="fields">
        <${Field} label="First name" name="first_name" value=${user.first_name} errors=${errors} />
        <${Field} label="Last name" name="last_name" value=${user.last_name} errors=${errors} />
        <${Field} label="Role" name="role" kind="select" value=${user.role} options=${names} hint="Changing the role signs the user out."
          errors=${errors} />
        <${Field} label="NPI" name="npi" value=${user.npi} errors=${errors} />
        <${Field} label="Phone" name="phone" kind="tel" value=${user.phone} errors=${errors} />
        <${Field} label="Time zone" name="time_zone" value=${user.time_zone} errors=${errors} /></div>
        <${ReauthField} reauth=${reauth} errors=${errors} />`}
      </${Form}>`}
  </${Dialog}>`;
}

/** @param {{user: User, changed: (user: User) => void}} props */
function Acts({ user, changed }) {
  const [confirming, setConfirming] = useState("");
  const path = (/** @type {string} */ act) => `users/${user.id}/${act}/`;
  const reloadUser = () => get(`users/${user.id}/`).then(changed);
  const own = user.id === me.value?.id;
  const signOn = useLoad((signal) => get("auth/oidc/", {}, signal), []);
  const danger = dangers[confirming];
  const reauth = useReauth("current_password");
  return html`<div class="actions">
      ${isLocked(user) && html`<${ActionButton} act=${() => post(path("unlock")).then(reloadUser)} doneText="Unlocked.">Unlock
        </${ActionButton}>`}
      <${ActionButton} act=${() => post(path("password-reset"))} doneText="Password link sent.">Send password link
        </${ActionButton}>
      <${ActionButton} act=${() => post(path("logout"))} doneText="Signed out on all devices.">Sign out everywhere</${ActionButton}>
      ${!own && (user.is_2fa_enabled || user.has_passkeys) && html`<button
        onClick=${() => setConfirming("2fa/reset")}>Turn off second factor</button>`}
      ${user.is_active ? !own && html`<button onClick=${() => setConfirming("deactivate")}>Deactivate</button>`
        : html`<${ActionButton} kind="main" act=${() => post(path("activate")).then(reloadUser)} doneText="Account activated.">
          Activate</${ActionButton}>`}
      ${signOn.data?.offered && user.role !== "patient" && html`<button
        onClick=${() => setConfirming("identity")}>Unlink single sign-on</button>`}
    </div>
    ${danger && html`<div class="notice warning" role="alert"><p>${danger.about}</p>
      <${Form} danger submit=${danger.name} cancel=${() => setConfirming("")} send=${reauth.wrap((values, password) =>
        (confirming === "identity" ? unlink(path(confirming)) : post(path(confirming), password)).then(reloadUser))}
        done=${() => { toast("Done."); setConfirming(""); }}>${(errors) =>
        html`<${ReauthField} reauth=${reauth} errors=${errors} />`}</${Form}></div>`}`;
}

/** @param {string} path */
const unlink = (path) => remove(path).catch((problem) => {
  throw problem.status === 404 ? new Problem(404,
    { detail: "This account is not linked: the user has not signed in with single sign-on yet." }) : problem;
});

/** Actions that require confirmation, by endpoint. @type {Record<string, {name: string, about: string}>} */
const dangers = {
  "2fa/reset": { name: "Turn off second factor",
    about: "Their next sign-in requires only the password. They should set up the second factor again." },
  deactivate: { name: "Deactivate account", about: "They are signed out immediately and can no longer sign in." },
  identity: { name: "Unlink the account", about: "Removes the link to the practice’s single sign-on and signs the user out. "
    + "Their next single sign-on is linked again if it has this email address." },
};
