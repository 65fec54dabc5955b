// The number of unread inbox messages, shown in the menu.
import { get } from "./api.js";
import { signal } from "./view.js";

/** Unread inbox messages. */
export const unread = signal(0);

export async function countUnread() {
  try {
    unread.value = (await get("notifications/", { unread: true, page_size: 1 })).unread_count;
  } catch {
    unread.value = 0; // the inbox shows the error
  }
}
