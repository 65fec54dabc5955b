// What PocketBase's dashboard has to know about Vigil. `app` and `t` are the dashboard's own globals.

// Encrypted text is text to an administrator.
app.fieldTypes.phi = { ...app.fieldTypes.text, label: "PHI (encrypted)", icon: "ri-lock-line" };

// A number that may be absent: an empty input is no value, and no value is an empty input. The dashboard's own number turns both into 0.
app.fieldTypes.optional_number = {
  ...app.fieldTypes.number,
  label: "Optional number",
  input: optionalNumberInput,
  view: (props) =>
    t.div({ className: "record-field-view field-type-number" }, () => {
      const value = props.record[props.field.name];
      return value == null ? t.span({ className: "missing-value" }) : t.span({ className: "txt" }, String(value));
    }),
};

function optionalNumberInput(props) {
  const id = "optional_number_" + app.utils.randomString();
  return t.div(
    { className: "record-field-input field-type-number" },
    t.div(
      { className: "field" },
      t.label(
        { htmlFor: id },
        t.i({ className: app.fieldTypes.optional_number.icon, ariaHidden: true }),
        t.span({ className: "txt" }, () => props.field.name),
      ),
      t.input({
        id,
        type: "number",
        step: "any",
        name: () => props.field.name,
        required: () => props.field.required,
        min: () => props.field.min,
        max: () => props.field.max,
        value: () => props.record[props.field.name] ?? "",
        oninput: (e) => {
          if (!e.target.validity.badInput) { // half a number, such as "-", is still being typed
            props.record[props.field.name] = e.target.value === "" ? null : Number(e.target.value);
          }
        },
      }),
    ),
    () => props.field.help ? t.div({ className: "field-help" }, props.field.help) : undefined,
  );
}

// The dashboard keeps half-filled forms and past searches in the browser's storage, in the clear and for ever. Ours hold patients.
const unkept = ["draft_", "pbRecordsSearchHistory_"];
const setItem = Storage.prototype.setItem;
Storage.prototype.setItem = function (key, value) {
  if (!unkept.some((prefix) => String(key).startsWith(prefix))) {
    setItem.call(this, key, value);
  }
};

// The service answers no SQL: its console would only disappoint.
delete app.store.settingsNavGroups.Debug;

// Nor does it take PocketBase's own backups, files or collections from outside: vigil backup and migrations do that.
const closedPages = ["#/settings/backups", "#/settings/storage", "#/settings/import-collections"];
for (const group of Object.keys(app.store.settingsNavGroups)) {
  app.store.settingsNavGroups[group] = app.store.settingsNavGroups[group].filter((page) => !closedPages.includes(page.href));
}
for (const page of closedPages) {
  app.routes.superuserOnly(page, () => {
    window.location.hash = "#/settings";
  });
}

// Signing in takes a code of the authenticator app. Nothing is mailed, and nothing resets a password by mail, whatever the dashboard's own pages say.
document.addEventListener("mount:authWithPasswordForm", (e) => e.detail.querySelector('a[href="#/request-password-reset"]')?.remove());
document.addEventListener("mount:authWithOTPForm", (e) => {
  const form = e.detail;
  const hint = form.querySelector(".content");
  if (hint) {
    hint.textContent = "Enter the six digits that your authenticator app shows for this account.";
  }
  form.querySelector("#otp_id")?.closest(".col-12").remove();
  form.querySelector("button.link-hint")?.closest(".block").remove();
  const code = form.querySelector("#otp_password");
  code?.setAttribute("autocomplete", "one-time-code");
  code?.setAttribute("inputmode", "numeric");
  code?.focus();
});
