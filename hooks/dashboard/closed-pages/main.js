// Hides the pages of closed routes in PocketBase's dashboard, and stores no typed text.

// The dashboard stores drafts and past searches in the browser, unencrypted and without expiry. They may contain patient data.
const blockedPrefixes = ["draft_", "pbRecordsSearchHistory_"];
const setItem = Storage.prototype.setItem;
Storage.prototype.setItem = function (key, value) {
  if (!blockedPrefixes.some((prefix) => String(key).startsWith(prefix))) {
    setItem.call(this, key, value);
  }
};

// The service has no SQL route, so the SQL console is removed.
delete app.store.settingsNavGroups.Debug;

// PocketBase's own backup, storage and import pages are closed: vigil backup and migrations replace them.
const closedPages = ["#/settings/backups", "#/settings/storage", "#/settings/import-collections"];
for (const group of Object.keys(app.store.settingsNavGroups)) {
  app.store.settingsNavGroups[group] = app.store.settingsNavGroups[group].filter((page) => !closedPages.includes(page.href));
}
for (const page of closedPages) {
  app.routes.superuserOnly(page, () => {
    window.location.hash = "#/settings";
  });
}

// Sign-in requires a code of the authenticator app. No mail is sent, so the forms for mailed codes and password resets are adapted.
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
