// The search above a list of records. PocketBase compares a word with every column, including ciphertext, and puts it into URLs, which browsers and
// proxies store. This search sends the words in a request body and receives a filter by ids.

const typed = new Map(); // typed words by filter, until the page is closed
const isFilter = (text) => /[=~<>]/.test(text); // PocketBase's own distinction

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
      return "Name, MRN, identifier, or a complete SSN, email address or phone number; or a filter...";
    case namesPatients(collection):
      return "Patient's name or MRN, or a word; or a filter...";
    case collection.name === "users":
      return "Name, email address or role; or a filter...";
  }
  return "A word, or a filter...";
}

const namesPatients = (collection) => collection.fields.some((field) => field.name === "patient");

// hintFor describes the searched and unsearched columns.
function hintFor(collection, more) {
  const sealed = sealedIn(collection);
  let searched = "Searched the unencrypted columns. To find a person, search patients or users.";
  if (collection.name === "patients") {
    const indexed = ["first_name", "last_name", "ssn", "email", "phone"];
    sealed.splice(0, sealed.length, ...sealed.filter((name) => !indexed.includes(name)));
    searched = "Searched names, MRN and identifiers, and complete SSNs, email addresses and phone numbers.";
  } else if (collection.name === "users") {
    sealed.splice(0, sealed.length, ...sealed.filter((name) => !["first_name", "last_name"].includes(name)));
    searched = "Searched names, email addresses and the unencrypted columns.";
  } else if (namesPatients(collection)) {
    searched = "Searched the patients' names and MRN; without a match, the unencrypted columns.";
  }
  return [
    more && "More matches exist: type more characters.",
    searched,
    sealed.length && `Not searched, because encrypted: ${sealed.join(", ")}.`,
  ].filter(Boolean).join(" ");
}

const refusal = (name) => `${name} is encrypted and cannot be used in a filter. Type the name without a filter to find patients and users.`;

// sealedName returns the first encrypted column in a filter, also of a relation (patient.last_name), or undefined.
function sealedName(filter, collection) {
  const outside = filter.replaceAll(/"[^"]*"|'[^']*'/g, " "); // without the compared values
  const anywhere = new Set(app.store.collections.flatMap(sealedIn));
  return (outside.match(/[\w.]+/g) ?? []).find((path) => {
    const steps = path.split(".");
    return steps.length > 1 ? anywhere.has(steps.at(-1)) : sealedIn(collection).includes(path);
  });
}

// Ciphertext has no useful order, so sorting by an encrypted column is refused before the list requests it.
document.addEventListener("click", (e) => {
  const head = e.target.closest?.("th.sort-handle.col-field-type-phi");
  if (head) {
    e.stopPropagation();
    app.toasts.error("Encrypted columns cannot be sorted.");
  }
}, true);
