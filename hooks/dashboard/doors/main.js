// What the dashboard of PocketBase shows of doors that Vigil has closed, and keeps of what was typed.

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
