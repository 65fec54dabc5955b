// Notification settings: channels, alert types, digest time, and quiet hours.
import { get, patch } from "../../api.js";
import { Field, Form } from "../../ui/form.js";
import { humanize } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["NotificationPreferences"]} Choices */

const path = "users/me/notification-preferences/";
const channels = /** @type {[keyof Choices["channels"], string, string][]} */ ([
  ["escalations", "Escalations", "Cannot be turned off."],
  ["alerts", "Alerts", "Critical alerts are always pushed."],
  ["reminders", "Reminders", ""],
  ["daily_digest", "Daily digest", ""],
]);
const subtypes = { threshold_warning: "Readings in the warning range", missed_reading: "Missed readings", device: "Devices",
  system_health: "System health" };

/** Converts dotted names such as "channels.alerts.push" to nested objects. @param {Record<string, any>} flat */
function nested(flat) {
  const body = { channels: {}, quiet_hours: /** @type {any} */ ({}) };
  const { exceptions, rest } = Object.entries(flat).reduce((sorted, [name, value]) => {
    if (name.startsWith("exceptions.")) {
      value && sorted.exceptions.push(name.slice("exceptions.".length));
    } else {
      sorted.rest.push([name, value]);
    }
    return sorted;
  }, { exceptions: /** @type {string[]} */ ([]), rest: /** @type {[string, any][]} */ ([]) });
  for (const [name, value] of rest) {
    const steps = name.split(".");
    const last = /** @type {string} */ (steps.pop());
    steps.reduce((at, step) => (at[step] ??= {}), /** @type {any} */ (body))[last] = value;
  }
  body.quiet_hours.exceptions = exceptions;
  return body;
}

export function Preferences() {
  const choices = useLoad((signal) => get(path, {}, signal), []);
  return html`<${Loaded} from=${choices}>${(/** @type {Choices} */ data) => html`
    <${Form} submit="Save" send=${(values) => patch(path, nested(values))}
      done=${(answer) => { choices.change(() => answer); toast("Saved."); }}>${(errors) => html`
      <div class="grid">
        <section class="card"><h2>Channels</h2>${channels.map(([channel, name, hint]) =>
          html`<${Channel} key=${channel} channel=${channel} name=${name} hint=${hint} data=${data} errors=${errors} />`)}</section>
        <section class="card"><h2>Which alerts</h2>
          ${Object.entries(data.channels.alerts.subtypes).map(([type, on]) => html`
            <${Field} key=${type} label=${subtypes[type] ?? humanize(type)} name=${`channels.alerts.subtypes.${type}`} kind="checkbox"
              value=${on} errors=${errors} />`)}
          <p class="soft">Critical readings always notify you.</p>
          <h2>Daily digest</h2>
          <${Field} label="Time of day" name="channels.daily_digest.time" kind="time" value=${data.channels.daily_digest.time}
            errors=${errors} />
        </section>
        <${Quiet} data=${data} errors=${errors} />
      </div>`}
    </${Form}>`}
  </${Loaded}>`;
}

/** @param {{channel: string, name: string, hint: string, data: Choices, errors: Record<string, string[]>}} props */
function Channel({ channel, name, hint, data, errors }) {
  const fixed = channel === "escalations";
  const on = data.channels[channel];
  return html`<fieldset class="bounds"><legend>${name}</legend>
    <${Field} label="Push" name=${`channels.${channel}.push`} kind="checkbox" value=${on.push} disabled=${fixed} errors=${errors}
      aria-label=${`${name}: push`} />
    <${Field} label="Inbox" name=${`channels.${channel}.in_app`} kind="checkbox" value=${on.in_app} disabled=${fixed} errors=${errors}
      aria-label=${`${name}: inbox`} />
    ${hint && html`<small class="soft">${hint}</small>`}
    ${errors[`channels.${channel}`] && html`<small class="wrong" role="alert">${errors[`channels.${channel}`].join(" ")}</small>`}
  </fieldset>`;
}

/** @param {{data: Choices, errors: Record<string, string[]>}} props */
function Quiet({ data, errors }) {
  const quiet = data.quiet_hours;
  return html`<section class="card"><h2>Quiet hours</h2>
    <p>No push between these times. The inbox still receives everything. Time zone: ${data.time_zone}.</p>
    <${Field} label="Use quiet hours" name="quiet_hours.enabled" kind="checkbox" value=${quiet.enabled} errors=${errors} />
    <div class="fields">
      <${Field} label="From" name="quiet_hours.start" kind="time" value=${quiet.start} errors=${errors} />
      <${Field} label="Until" name="quiet_hours.end" kind="time" value=${quiet.end} errors=${errors} />
    </div>
    <fieldset class="bounds"><legend>Push anyway</legend>${channels.map(([channel, name]) => html`
      <${Field} key=${channel} label=${name} name=${`exceptions.${channel}`} kind="checkbox" value=${quiet.exceptions.includes(channel)}
        disabled=${channel === "escalations"} errors=${{}} aria-label=${`Push during quiet hours: ${name}`} />`)}
      ${errors["quiet_hours.exceptions"] && html`<small class="wrong" role="alert">${errors["quiet_hours.exceptions"].join(" ")}</small>`}
    </fieldset>
    <${Field} label="Time zone" name="time_zone" value=${data.time_zone} hint="For example America/Chicago" errors=${errors} />
  </section>`;
}
