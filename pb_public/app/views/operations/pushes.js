// The log of push deliveries and their results, to explain missing notifications.
import { Badge } from "../../ui/badge.js";
import { Field } from "../../ui/form.js";
import { dateTime, humanize } from "../../ui/format.js";
import { List } from "../../ui/table.js";
import { useQuery } from "../../query.js";
import { html } from "../../view.js";

const states = /** @type {[string, string][]} */ ([["", "All"], ...["pending", "sent", "failed", "expired_token", "skipped_quiet_hours",
  "skipped_preference", "no_transport", "cancelled"].map((state) => [state, humanize(state)])]);
const tones = { sent: "succeeded", failed: "failed", expired_token: "warning", no_transport: "warning" };

export function Pushes() {
  const [{ status }, filter] = useQuery({ status: "" });
  return html`<div class="filters" role="search" aria-label="Filter the pushes">
      <${Field} label="State" name="status" kind="select" value=${status} options=${states} onChange=${(event) =>
        filter({ status: event.target.value })} /></div>
    <${List} name="" path="notifications/deliveries/" query=${{ status }} caption="Pushes, newest first" nothing="No pushes"
      columns=${[
      { name: "attempted_at", head: "When", cell: (push) => dateTime(push.attempted_at) }, { name: "user", head: "To" },
      { name: "title", head: "Message", cell: (push) => html`${push.title}<span class="two">${push.body}</span>` },
      { name: "status", head: "State", cell: (push) => html`<${Badge} of=${tones[push.status] ?? push.status}
        text=${humanize(push.status)} />` },
      { name: "status_code", head: "Response", number: true },
    ]} />`;
}
