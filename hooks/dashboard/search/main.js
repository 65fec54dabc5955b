// The search above a list of records. PocketBase compares a word with every column, ciphertext too, and writes it into addresses, which browsers
// and proxies keep. Here words go to the service in a body, and what comes back is a filter by ids.

const typed = new Map(); // filter: the words it stands for, for as long as the page is open
const isFilter = (text) => /[=~<>]/.test(text); // as PocketBase tells them apart

const sealedIn = (collection) => (collection?.fields ?? []).filter((field) => field.type === "phi" && !field.hidden).map((field) => field.name);

app.components.recordsSearchbar = (props = {}) => {
  const given = (name) => typeof props[name] === "function" ? props[name]() : props[name];
  const local = store({ hint: "" });
  let latest = 0;

  async function submit(text) {
    const collection = given("collection");
    const turn = ++latest;
    local.hint = "";
    text = text.trim();
    if (!text || isFilter(text)) {
      const sealed = sealedName(text, collection);
      return sealed ? app.toasts.error(refusal(sealed)) : props.onsubmit?.(text);
    }
    try {
      const found = await app.pb.send("/_/search", { method: "POST", body: { collection: collection.name, words: text }, requestKey: null });
      if (turn === latest && collection.id === given("collection")?.id) {
        typed.set(found.filter, text);
        props.onsubmit?.(found.filter);
        local.hint = hintFor(collection, found.more);
      }
    } catch (err) {
      app.checkApiError(err);
    }
  }

  return t.div(
    { className: "full-width records-searchbar-wrapper", hidden: () => given("hidden") },
    app.components.searchbar({
      placeholder: () => placeholder(given("collection")),
      disabled: () => given("disabled") || !given("collection"),
      value: () => typed.get(given("value")) ?? given("value") ?? "",
      autocomplete: (word) => app.utils.collectionAutocompleteKeys(given("collection"), word, { requestKeys: false, collectionJoinKeys: false }),
      onsubmit: submit,
    }),
    () => given("value") && local.hint ? t.div({ className: "field-help", role: "status" }, local.hint) : undefined,
  );
};

function placeholder(collection) {
  switch (true) {
    case !collection:
      return "Loading...";
    case collection.name === "patients":
      return "Name, MRN, identifier, or a whole SSN, e-mail address or phone number; or a filter...";
    case namesPatients(collection):
      return "Patient's name or MRN, or a word; or a filter...";
    case collection.name === "users":
      return "Name, e-mail address or role; or a filter...";
  }
  return "A word, or a filter...";
}

const namesPatients = (collection) => collection.fields.some((field) => field.name === "patient");

// hintFor says where was looked, and where not.
function hintFor(collection, more) {
  const sealed = sealedIn(collection);
  let looked = "Looked for in the columns that lie open; people are looked for in patients and users.";
  if (collection.name === "patients") {
    const found = ["first_name", "last_name", "ssn", "email", "phone"];
    sealed.splice(0, sealed.length, ...sealed.filter((name) => !found.includes(name)));
    looked = "Looked for in names, MRN and identifiers, and for an SSN, e-mail address and phone number as a whole.";
  } else if (collection.name === "users") {
    sealed.splice(0, sealed.length, ...sealed.filter((name) => !["first_name", "last_name"].includes(name)));
    looked = "Looked for in names, e-mail addresses and the columns that lie open.";
  } else if (namesPatients(collection)) {
    looked = "Looked for among the patients' names and MRN; where nobody is called so, in the columns that lie open.";
  }
  return [
    more && "There are more than can be shown: type more.",
    looked,
    sealed.length && `Not searched, because encrypted: ${sealed.join(", ")}.`,
  ].filter(Boolean).join(" ");
}

const refusal = (name) => `${name} is encrypted, so no filter can compare it. Type a name by itself: patients and users are found by it.`;

// sealedName is the first encrypted column that a filter compares, also one of a relation (patient.last_name); undefined when there is none.
function sealedName(filter, collection) {
  const outside = filter.replaceAll(/"[^"]*"|'[^']*'/g, " "); // not what is compared with
  const anywhere = new Set(app.store.collections.flatMap(sealedIn));
  return (outside.match(/[\w.]+/g) ?? []).find((path) => {
    const steps = path.split(".");
    return steps.length > 1 ? anywhere.has(steps.at(-1)) : sealedIn(collection).includes(path);
  });
}

// The order of ciphertext is no order. The list itself would ask for it.
document.addEventListener("click", (e) => {
  const head = e.target.closest?.("th.sort-handle.col-field-type-phi");
  if (head) {
    e.stopPropagation();
    app.toasts.error("An encrypted column cannot be sorted by.");
  }
}, true);
