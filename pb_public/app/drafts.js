// Drafts: text that was entered and not sent. They are kept for this tab in sessionStorage, encrypted with a key that the server returns
// at sign-in and that is never stored. A reload, an expired session or a crash loses no note, and a stolen disk reveals none.
import { computed, signal } from "./view.js";

const prefix = "draft.";
const drafts = signal(/** @type {Map<string, string>} */ (new Map()));
/** @type {{seal: CryptoKey, name: CryptoKey} | null} */
let keys = null;
let openSecret = "";
let queue = Promise.resolve();

/** The number of drafts in this tab. */
export const draftCount = computed(() => drafts.value.size);

const bytes = (/** @type {string} */ text) => new TextEncoder().encode(text);
const toBase64 = (/** @type {ArrayBuffer | Uint8Array<ArrayBuffer>} */ data) => btoa(String.fromCharCode(...new Uint8Array(data)));
const fromBase64 = (/** @type {string} */ text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Decrypts this tab's drafts of the user who has the key. Drafts of other users stay encrypted.
 *  @param {string} secret base64, of 32 bytes; "" for none */
export async function openDrafts(secret) {
  if (secret === openSecret) {
    return;
  }
  closeDrafts();
  openSecret = secret;
  if (!secret || !crypto.subtle) {
    return; // drafts are then kept in memory only
  }
  const raw = await crypto.subtle.importKey("raw", fromBase64(secret), "HKDF", false, ["deriveKey"]);
  const derived = (/** @type {string} */ info, /** @type {any} */ kind, /** @type {KeyUsage[]} */ uses) =>
    crypto.subtle.deriveKey({ name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info: bytes(info) }, raw, kind, false, uses);
  const derivedKeys = {
    seal: await derived("draft", { name: "AES-GCM", length: 256 }, ["encrypt", "decrypt"]),
    name: await derived("name of a draft", { name: "HMAC", hash: "SHA-256", length: 256 }, ["sign"]),
  };
  const found = new Map();
  for (const at of Object.keys(sessionStorage).filter((name) => name.startsWith(prefix))) {
    try {
      const sealed = fromBase64(sessionStorage.getItem(at) ?? "");
      const open = await crypto.subtle.decrypt({ name: "AES-GCM", iv: sealed.slice(0, 12) }, derivedKeys.seal, sealed.slice(12));
      const [key, text] = JSON.parse(new TextDecoder().decode(open));
      found.set(key, text);
    } catch {
      // A draft of another user.
    }
  }
  if (openSecret === secret) { // otherwise the user has signed out in the meantime
    keys = derivedKeys;
    drafts.value = found;
  }
}

/** Clears the decrypted drafts from memory; the encrypted ones remain. */
export function closeDrafts() {
  openSecret = "";
  keys = null;
  drafts.value = new Map();
}

/** @param {string} key */
export const draftOf = (key) => drafts.peek().get(key) ?? "";

/** Saves a draft; an empty text deletes it. @param {string} key @param {string} text */
export function saveDraft(key, text) {
  const next = new Map(drafts.peek());
  if (text.trim() === "") {
    next.delete(key);
  } else {
    next.set(key, text);
  }
  drafts.value = next;
  const currentKeys = keys;
  if (currentKeys) {
    queue = queue.then(() => store(currentKeys, key)).catch(() => {});
  }
}

/** @param {{seal: CryptoKey, name: CryptoKey}} currentKeys @param {string} key */
async function store(currentKeys, key) {
  const text = drafts.peek().get(key);
  const at = prefix + toBase64(await crypto.subtle.sign("HMAC", currentKeys.name, bytes(key)));
  if (currentKeys !== keys) {
    return; // another user has signed in
  }
  if (text === undefined) {
    return sessionStorage.removeItem(at);
  }
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const sealed = new Uint8Array(await crypto.subtle.encrypt({ name: "AES-GCM", iv }, currentKeys.seal, bytes(JSON.stringify([key, text]))));
  sessionStorage.setItem(at, toBase64(new Uint8Array([...iv, ...sealed])));
}

/**
 * A draft and its setter: `const [draft, setDraft] = useDraft(`note.${alert.id}`)`; call setDraft("") after sending. The key names what the
 * draft is for. It may contain an id, because it is encrypted with the text. A field takes the draft as its initial value.
 * @param {string} key @returns {[string, (text: string) => void]}
 */
export function useDraft(key) {
  return [drafts.value.get(key) ?? "", (text) => saveDraft(key, text)];
}
