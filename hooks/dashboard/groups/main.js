// Groups the collections: daily ones first, those that only the service writes last and collapsed.

const groups = {
  "Patients": [
    "patients", "observations", "alerts", "escalations", "triage_scores", "care_team_members", "consents", "orders", "snoozes",
    "messages",
  ],
  "Thresholds and on-call": ["thresholds", "threshold_templates", "threshold_changes", "on_call_rota", "escalation_events"],
  "Devices": ["devices", "device_assignments", "device_orders", "hubs"],
  "Time and billing": [
    "time_entries", "billing_entries", "claim_batches", "claim_lines", "claim_responses", "payments", "payers", "payer_rates", "fee_schedule",
    "icd10_codes",
  ],
  "Accounts and audit": ["users", "_superusers", "clients", "passkeys", "identities", "audit_log"],
  "Connections": ["transmissions", "transmission_attempts", "gateway_events", "webhooks", "webhook_deliveries", "exports", "notifications", "mails"],
};
const internalGroup = "Internal"; // collections without a group

const groupByName = new Map(Object.entries(groups).flatMap(([group, names]) => names.map((name) => [name, group])));
const order = [...groupByName.keys()];
const groupOf = (collection) => groupByName.get(collection.name) ?? internalGroup;

// PocketBase sorts by type and name, and opens the first collection.
const sortedByName = app.utils.sortedCollections;
app.utils.sortedCollectionsByType = (collections = []) => {
  const place = (collection) => groupByName.has(collection.name) ? order.indexOf(collection.name) : order.length;
  return sortedByName(collections).sort((a, b) => place(a) - place(b)); // the sort is stable
};
app.store.collections = app.utils.sortedCollectionsByType(app.store.collections);

const pinned = "Pinned";
const pinnedKey = "pbPinnedCollections"; // PocketBase's key, so existing pins are kept

// Keeps PocketBase's search field and replaces the list below it.
const pageSidebar = app.components.pageSidebar;
app.components.pageSidebar = (props = {}, ...children) => {
  const kind = typeof props.className === "function" ? props.className() : props.className; // the settings page uses a text
  if (!kind?.includes("collections-sidebar")) {
    return pageSidebar(props, ...children);
  }
  const data = store({ search: "", pinned: app.utils.getLocalHistory(pinnedKey, []) });
  const follow = (e) => { // the input is private to PocketBase, and its button clears it
    const typed = e.currentTarget.querySelector(".sidebar-search input");
    setTimeout(() => (data.search = typed.value.replaceAll(" ", "").toLowerCase()));
  };
  const onmount = (sidebar) => {
    sidebar.addEventListener("input", follow);
    sidebar.addEventListener("click", follow);
    props.onmount?.(sidebar);
  };
  return pageSidebar({ ...props, onmount }, ...children.slice(0, -1), () => groupsList(data));
};

function groupsList(data) {
  const groupIn = (collection) => data.pinned.includes(collection.id) ? pinned : groupOf(collection);
  return t.nav({ className: "sidebar-content collections-list scrollable compact" }, () =>
    [pinned, ...Object.keys(groups), internalGroup].map((group) => {
      const members = app.store.collections.filter((c) =>
        groupIn(c) === group && (c.name + c.id + c.type).toLowerCase().includes(data.search)
      );
      return members.length && t.details(
        { className: "nav-group", open: group !== internalGroup || !!data.search },
        t.summary(null, group),
        ...members.map((collection) => item(collection, data)),
      );
    }).filter(Boolean));
}

function item(collection, data) {
  const address = `#/collections?collection=${collection.name}`;
  return t.button(
    {
      "html-data-collection-id": collection.id,
      type: "button",
      title: collection.name,
      style: "min-height: 30px; padding-block: 2px; font-size: inherit", // fits all collections on one screen
      className: () => `nav-item responsive-close ${collection.id === app.store.activeCollection?.id ? "active" : ""}`,
      onclick: () => (app.store.activeCollection = collection.name),
      onauxclick: (e) => {
        e.preventDefault();
        window.open(address, "_blank", "noreferrer,noopener");
      },
    },
    t.i({ className: app.collectionTypes[collection.type]?.icon || app.utils.fallbackCollectionIcon, ariaHidden: true }),
    t.span({ className: "txt" }, collection.name),
    pin(collection, data),
  );
}

function pin(collection, data) {
  const isPinned = data.pinned.includes(collection.id);
  return t.span(
    {
      role: "button",
      className: "pin",
      title: isPinned ? "Unpin" : "Pin",
      onclick: (e) => {
        e.stopPropagation();
        data.pinned = isPinned ? data.pinned.filter((id) => id !== collection.id) : [...data.pinned, collection.id];
        app.utils.saveLocalHistory(pinnedKey, data.pinned);
      },
    },
    t.i({ className: isPinned ? "ri-unpin-line" : "ri-pushpin-line", ariaHidden: true }),
  );
}
