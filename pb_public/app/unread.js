// How many entries of the inbox are unread: the menu shows it, the list changes it.
import { get } from "./api.js";
import { signal } from "./view.js";

/** Unread entries of the inbox. */
export const unread = signal(0);

export async function countUnread() {
  try {
    unread.value = (await get("notifications/", { unread: true, page_size: 1 })).unread_count;
  } catch {
    unread.value = 0; // the inbox says what is wrong
  }
}
