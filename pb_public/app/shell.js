// The frame of every view: sign-in, or menu, user, stream state and shortcuts.
import { roleNames } from "./permissions.js";
import { CriticalAnswer, CriticalBanner } from "./critical_banner.js";
import { criticals } from "./criticals.js";
import { SessionExpiry } from "./session_expiry.js";
import { isDialogOpen, useKeys } from "./keys.js";
import { listen, onGap, stream } from "./live.js";
import { restorePlace, go, clearPlace, place } from "./router.js";
import { homeView, isView, phoneSections, sectionOf, sectionsOf } from "./sections.js";
import { me } from "./session.js";
import { signOut } from "./sign_on.js";
import { dateTime } from "./ui/format.js";
import { useHeight } from "./ui/height.js";
import { lazy } from "./ui/lazy.js";
import { KeyList } from "./ui/key_list.js";
import { EmptyState, Waiting } from "./ui/states.js";
import { useInSight } from "./ui/tabs.js";
import { Toasts } from "./ui/toast.js";
import { TopTimer } from "./ui/timer_bar.js";
import { countUnread, unread } from "./unread.js";
import { classes, html, logo, useEffect, useLayoutEffect, useState } from "./view.js";
import { load } from "./views.js";
import { NewPassword, SignIn } from "./views/sign_in.js";

export function Shell() {
  const person = me.value;
  useLayoutEffect(() => {
    if (person) {
      restorePlace(person.id);
    } else {
      clearPlace();
    }
  }, [person === null]);
  useEffect(() => { person === null && void load.triage().catch(() => {}); }, []); // preloads the view that most users open
  return html`
    ${person === null ? html`<${SignIn} />` : person.must_change_password ? html`<${NewPassword} />`
      : person.role === "patient" ? html`<${PortalFrame} view=${portalView()}><${View} key=${portalView()}
        section=${sectionOf(portalView())} about=${{}} /></${PortalFrame}>` : html`<${Frame} person=${person} />`}
    ${person && html`<${SessionExpiry} />`}
    <${Toasts} />`;
}

/** The frame of patients, which staff never load. */
const PortalFrame = lazy(() => import("./portal/frame.js").then((m) => m.PortalFrame));

/** The view of a patient: the readings, unless another of the patient's views is open. */
const portalView = () => (sectionOf(place.value.view) ? place.value.view : "my-health");

/** @param {{person: import("./session.js").Person}} props */
function Frame({ person }) {
  const visibleSections = sectionsOf();
  const due = person.two_factor_due_at;
  const view = due && Date.parse(due) <= Date.now() ? "account" : place.value.view || homeView();
  const section = sectionOf(view);
  const [isKeyListOpen, setKeyListOpen] = useState(false);
  const [FindDialog, setFindOpen] = useFind();
  useKeys({
    ...Object.fromEntries(visibleSections.map((s) => [`g ${s.key}`, { label: s.name, act: () => go(s.view) }])),
    "?": { label: "Show keyboard shortcuts", act: () => setKeyListOpen(true) },
  });
  useEffect(() => {
    void countUnread();
    let waiting = 0;
    const scheduleCount = () => { waiting ||= setTimeout(() => { waiting = 0; void countUnread(); }, 10_000);
      }; // one count for many events
    const timer = setInterval(countUnread, 60_000);
    const stops = [listen("alert", scheduleCount), listen("escalation", scheduleCount), onGap(scheduleCount)];
    return () => { clearInterval(timer); clearTimeout(waiting); stops.forEach((stop) => stop()); };
  }, []);
  const menuRef = useInSight(view);
  const inMenu = visibleSections.filter((s) => s.view !== "account");
  const onPhone = phoneSections(inMenu);
  const bar = useHeight("--bar");
  const open = criticals.value;
  useEffect(() => { document.title = `${open > 0 ? `(${open}) ` : ""}${section ? `${section.name} – ` : ""}Vigil`; }, [section, open]);
  return html`
    <a class="skip" href="#main" onClick=${toMain}>Skip to content</a>
    <header class="top" ref=${bar}>
      <span class="brand"><img src=${logo} alt="" width="28" height="28" /> <span class="name">Vigil</span></span>
      <${CriticalBanner} />
      <div class="person">
        <${TopTimer} />
        <button class="finder" onClick=${() => setFindOpen(true)} aria-label="Find a patient or action"
          aria-keyshortcuts="Control+K Meta+K">
          <span aria-hidden="true">⌕</span> <span class="words" aria-hidden="true">Find a patient or action</span>
          <kbd aria-hidden="true">${mac ? "⌘ K" : "Ctrl K"}</kbd></button>
        <${StreamState} />
        <${UserButton} person=${person} />
      </div>
      <nav aria-label="Sections" ref=${menuRef}>
        ${inMenu.map((s) => html`<${SectionLink} key=${s.view} section=${s} view=${view} isOnPhone=${onPhone.includes(s)} />`)}
        <button class="more" popovertarget="user-menu"
          aria-current=${visibleSections.some((s) => s.view === view && !onPhone.includes(s)) ? "page" : null}>More</button>
      </nav>
      <${UserMenu} view=${view} rest=${inMenu.filter((s) => !onPhone.includes(s))} />
    </header>
    <main id="main" tabindex="-1">
      ${due && html`<p class="notice" role="status">${Date.parse(due) > Date.now() ? `Set up a second factor by ${dateTime(due)}.`
        : "Set up a second factor to continue: an authenticator app or a passkey."}
        ${view !== "account" && html` <a href="#/account">Set up</a>`}</p>`}
      ${section ? html`<${View} key=${view} section=${section} about=${place.value.about} />`
        : isView(view) ? html`<${EmptyState} title="Not for your role" page>Contact an administrator if you need access.</${EmptyState}>`
        : html`<${EmptyState} title="Page not found" page>Choose a section above.</${EmptyState}>`}
    </main>
    <${CriticalAnswer} />
    ${isKeyListOpen && html`<${KeyList} close=${() => setKeyListOpen(false)} />`}
    ${FindDialog && html`<${FindDialog} close=${() => setFindOpen(false)} />`}`;
}

const mac = /mac/i.test(navigator.platform);

/** Opens Find with Ctrl-K or Cmd-K, also while the user types. Its code loads on first use.
 *  @returns {[any, (open: boolean) => void]} */
function useFind() {
  const [Component, setComponent] = useState(/** @type {any} */ (null));
  const open = (/** @type {boolean} */ wanted) => (wanted
    ? void import("./ui/find.js").then((m) => setComponent(() => m.Find)) : setComponent(null));
  useEffect(() => {
    const press = (/** @type {KeyboardEvent} */ event) => {
      if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
        event.preventDefault(); // replaces the browser's search
        if (!isDialogOpen()) {
          open(true);
        }
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return [Component, open];
}

/** @param {Event} event */
function toMain(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** A link of the menu with the number that waits there.
 *  @param {{section: import("./sections.js").Section, view: string, isOnPhone?: boolean}} props */
function SectionLink({ section: { view: of, name, key }, view, isOnPhone }) {
  const open = criticals.value;
  return html`<a href=${`#/${of}`} aria-current=${of === view ? "page" : null} title=${`G then ${key.toUpperCase()}`}
    class=${isOnPhone ? "on-phone" : null} onClick=${(/** @type {Event} */ event) => { event.preventDefault(); go(of); }}>${name}
    ${of === "inbox" && unread.value > 0 && html`<span class="count quiet">${unread.value}<span class="unseen"> unread</span></span>`}
    ${of === "alerts" && open > 0 && html`<span class="count"><span aria-hidden="true">▲</span> ${open}
      <span class="unseen"> critical</span></span>`}</a>`;
}

/** Opens the user's menu: the name and role, or the initials where space is short.
 *  @param {{person: import("./session.js").Person}} props */
const UserButton = ({ person: { first_name: first, last_name: last, role } }) => html`<button class="user" popovertarget="user-menu">
  <span class="full"><bdi>${first} ${last}</bdi><small>${roleNames[role]}</small></span>
  <span class="face" aria-hidden="true">${first.charAt(0)}${last.charAt(0)}</span></button>`;

/** Account and Sign out, and on the phone the sections that its bar has no space for.
 *  @param {{view: string, rest: import("./sections.js").Section[]}} props */
const UserMenu = ({ view, rest }) => html`<div id="user-menu" popover="auto" role="group" aria-label="Your menu"
    onClick=${(/** @type {any} */ { currentTarget: menu }) => menu.hidePopover()}>
  <span class="rest">${rest.map((section) => html`<${SectionLink} key=${section.view} section=${section} view=${view} />`)}</span>
  <${SectionLink} section=${sectionOf("account")} view=${view} />
  <button class="quiet" onClick=${() => signOut()}>Sign out</button></div>`;

function StreamState() {
  const words = { live: ["Live"], connecting: ["Connecting"], cut: ["Not live", ": reconnecting"], off: [] };
  const state = stream.value;
  const [text, more] = words[state];
  const detail = more && html`<span class="rest">${more}</span>`;
  return text && html`<span class=${classes("stream", state)} role="status"><span class="text">${text}</span>${detail}</span>`;
}

/** Loads the code of a view on first use.
 *  @param {{section: import("./sections.js").Section, about: Record<string, any>}} props */
function View({ section, about }) {
  const [Component, setComponent] = useState(/** @type {any} */ (null));
  useEffect(() => {
    let wanted = true;
    void load[section.view]().then((component) => wanted && setComponent(() => component));
    return () => { wanted = false; };
  }, [section]);
  return Component ? html`<${Component} ...${about} />` : html`<${Waiting} />`;
}
