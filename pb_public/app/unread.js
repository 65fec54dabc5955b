// The number of inbox messages that wait for the user, shown in the menu.
import { get } from "./api.js";
import { signal } from "./view.js";

/** Messages that wait: unread, and neither about an alert nor about an escalation that is closed or taken by another user. */
export const unread = signal(0);

export async function countUnread() {
  try {
    unread.value = (await get("notifications/", { waiting: true, page_size: 1 })).count;
  } catch {
    unread.value = 0; // the inbox shows the error
  }
}
