package auth_test

import (
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

const resetPage = "https://vigil.example.org/reset?from=mail"

func withResetPage(o *auth.Options) {
	o.ResetURL, o.SignInURL = resetPage, "https://vigil.example.org/"
}

func requestReset(t testing.TB, e *auth.Engine, app core.App, email string, now time.Time) {
	t.Helper()
	if err := e.RequestReset(app, auth.ResetRequestBody{Email: validate.Of(email)}, origin, now); err != nil {
		t.Fatal(err)
	}
}

// resolve runs the mailer's lookup on the last mail and returns the token of its link, or "".
func resolve(t testing.TB, e *auth.Engine, app core.App, now time.Time) (token string, mail *collections.Mail) {
	t.Helper()
	var id string
	if err := app.DB().NewQuery("SELECT id FROM mails ORDER BY rowid DESC LIMIT 1").Row(&id); err != nil {
		t.Fatal(err)
	}
	err := app.RunInTransaction(func(tx core.App) (err error) {
		if mail, err = collections.FindMail(tx, id); err != nil {
			return err
		}
		send, err := e.ResolveMail(tx, mail, now)
		if err != nil || !send {
			return err
		}
		token = tokenIn(t, mail.Parameters()["link"])
		return tx.Save(mail)
	})
	if err != nil {
		t.Fatal(err)
	}
	return token, mail
}

func tokenIn(t testing.TB, link string) string {
	t.Helper()
	address, err := url.Parse(link)
	if err != nil || address.Host != "vigil.example.org" || address.Path != "/reset" || address.Query().Get("from") != "mail" {
		t.Fatalf("link %s, %v", link, err)
	}
	return address.Query().Get("token")
}

func setPassword(t testing.TB, e *auth.Engine, app core.App, token, password string, now time.Time) error {
	t.Helper()
	return e.ConfirmReset(t.Context(), app, auth.ResetBody{
		Token: validate.Of(token), NewPassword: validate.Of(password), NewPasswordConfirm: validate.Of(password),
	}, origin, now)
}

// TestResetRequestRevealsNothing checks that a request stores the same for an address with and without an account.
func TestResetRequestRevealsNothing(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine(withResetPage)
	user := vigiltest.User(t, app, authz.Nurse)
	added := map[string]map[string]int{}
	for _, email := range []string{user.Email(), "nobody@vigil.test"} {
		before := vigiltest.RowCounts(t, app)
		requestReset(t, e, app, "  "+strings.ToUpper(email), clock)
		added[email] = vigiltest.RowsAdded(t, app, before)
	}
	if want := map[string]int{"mails": 1, "audit_log": 1}; !maps.Equal(added[user.Email()], want) || !maps.Equal(added["nobody@vigil.test"], want) {
		t.Errorf("added %v", added)
	}
	var named int
	if err := app.DB().NewQuery("SELECT COUNT(*) FROM mails WHERE user != ''").Row(&named); err != nil || named != 0 {
		t.Errorf("%d mails name their reader, %v", named, err)
	}
	rows, err := collections.AuditRows(app, "", "~", 10)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(rows[0].ResourceType, rows[0].ResourceID); got != fmt.Sprint("User", user.Number()) {
		t.Errorf("recorded of %s", got)
	}
	if got := rows[1].ResourceType + rows[1].ResourceID; got != "LoginKey"+vigiltest.Sealer().LoginKey("nobody@vigil.test") {
		t.Errorf("recorded of %s", got)
	}
	err = e.RequestReset(app, auth.ResetRequestBody{}, origin, clock)
	wantCode(t, "no address", err, "validation_error")
}

func TestResetLink(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine(withResetPage)
	user := vigiltest.User(t, app, authz.Nurse, vigiltest.With("must_change_password", true))
	for range 5 {
		loginCode(t, e, app, user, "wrong", "", clock)
	}
	requestReset(t, e, app, user.Email(), clock)
	first, _ := resolve(t, e, app, clock)
	requestReset(t, e, app, user.Email(), clock)
	token, mail := resolve(t, e, app, clock)
	if len(token) != 43 || token == first || mail.UserID() != user.Id {
		t.Errorf("tokens %q and %q for %s", first, token, mail.UserID())
	}
	wantCode(t, "the earlier link", setPassword(t, e, app, first, "Next-Lantern-41", clock), "invalid_reset_token")
	wantCode(t, "an hour later", setPassword(t, e, app, token, "Next-Lantern-41", clock.Add(time.Hour)), "invalid_reset_token")
	for _, weak := range []string{"short-A1", vigiltest.Password, "Test, Person 1815"} {
		wantCode(t, weak, setPassword(t, e, app, token, weak, clock), "validation_error")
	}
	err := e.ConfirmReset(t.Context(), app, auth.ResetBody{Token: validate.Of(token), NewPassword: validate.Of("Next-Lantern-41"), NewPasswordConfirm: validate.Of("Next-Lantern-42")}, origin, clock)
	if got := wrongFields(err); got != "new_password_confirm" {
		t.Errorf("two passwords: %s", got)
	}
	err = e.ConfirmReset(t.Context(), app, auth.ResetBody{NewPassword: validate.Of("x")}, origin, clock)
	if got := wrongFields(err); got != "new_password_confirm token" {
		t.Errorf("no token: %s", got)
	}
	err = e.ConfirmReset(t.Context(), app, auth.ResetBody{Token: validate.Of("unknown"), NewPassword: validate.Of("x")}, origin, clock)
	if got := wrongFields(err); got != "new_password_confirm" { // the password policy is not checked without a valid link
		t.Errorf("an unknown token: %s", got)
	}

	wantCode(t, "in its last moment", setPassword(t, e, app, token, "Next-Lantern-41", clock.Add(time.Hour-time.Second)), "")
	wantCode(t, "again", setPassword(t, e, app, token, "Next-Lantern-42", clock), "invalid_reset_token")
	if got := loginCode(t, e, app, user, "Next-Lantern-41", "", clock); got != "" { // the reset ends the lockout
		t.Errorf("the new password: %s", got)
	}
	if got := loginCode(t, e, app, user, vigiltest.Password, "", clock); got != "authentication_failed" {
		t.Errorf("the old password: %s", got)
	}
	if reloadUser(t, app, user).MustChangePassword() {
		t.Error("the password must still be changed")
	}
	if got := mails(t, app); got != "account_locked password_changed password_reset password_reset" {
		t.Errorf("mails: %s", got)
	}
}

// TestResetEndsSessions checks that a reset ends every session.
func TestResetEndsSessions(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine(withResetPage)
	user := vigiltest.User(t, app, authz.Nurse)
	_, session := signedIn(t, e, app, user, clock)
	admin := administrator(t, e, app)
	if err := e.SendReset(app, admin, user.Id, origin, clock); err != nil {
		t.Fatal(err)
	}
	token, _ := resolve(t, e, app, clock)
	wantCode(t, "set", setPassword(t, e, app, token, "Next-Lantern-41", clock), "")
	_, err := e.Authenticate(app, session.Access, clock)
	wantCode(t, "access", err, "token_invalid")
	_, err = refresh(e, app, session.Refresh, clock)
	wantCode(t, "refresh", err, "token_revoked")
	if got := recorded(t, app, user); got != "auth.password_reset_request[] auth.password_reset[]" {
		t.Errorf("recorded %s", got)
	}
}

// TestResetMailLimit checks that at most three links an hour are mailed, and none to accounts that cannot use them.
func TestResetMailLimit(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine(withResetPage)
	user := vigiltest.User(t, app, authz.Nurse)
	for _, test := range []struct {
		minutes int
		mailed  bool
	}{{0, true}, {20, true}, {40, true}, {59, false}, {60, true}, {61, false}, {80, true}} {
		at := clock.Add(time.Duration(test.minutes) * time.Minute)
		requestReset(t, e, app, user.Email(), at)
		token, _ := resolve(t, e, app, at)
		if (token != "") != test.mailed {
			t.Errorf("after %d minutes: mailed is %v", test.minutes, token != "")
		}
	}
	closed := vigiltest.User(t, app, authz.Nurse, vigiltest.Inactive())
	gone := vigiltest.User(t, app, authz.Patient, vigiltest.PortalOf(patient(t, app, "A-2", true)))
	portal := vigiltest.User(t, app, authz.Patient, vigiltest.PortalOf(patient(t, app, "A-1", false)))
	for email, mailed := range map[string]bool{closed.Email(): false, gone.Email(): false, "nobody@vigil.test": false, portal.Email(): true} {
		requestReset(t, e, app, email, clock)
		if token, _ := resolve(t, e, app, clock); (token != "") != mailed {
			t.Errorf("%s: mailed is %v", email, token != "")
		}
	}
}

// TestLockoutNoticeToAdministrators checks that administrators are notified of a lockout only if the address has an account, of a user or of a
// superuser.
func TestLockoutNoticeToAdministrators(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	admin := vigiltest.User(t, app, authz.Admin)
	vigiltest.User(t, app, authz.Admin, vigiltest.Inactive())
	known := vigiltest.User(t, app, authz.Nurse)
	root := superuser(t, app, "root@vigil.test")
	lock := func(try func() error) []string {
		for range 5 {
			wantCode(t, "a failure", try(), "authentication_failed")
		}
		before := vigiltest.RowCounts(t, app)
		if token, _ := resolve(t, e, app, clock); token != "" {
			t.Error("a lock is no link")
		}
		added := vigiltest.RowsAdded(t, app, before)
		if added["notifications"] != added["mails"] {
			t.Errorf("added %v", added)
		}
		if added["notifications"] == 0 {
			return nil
		}
		notices, err := app.FindRecordsByFilter(collections.Notifications, "user = {:user}", "-@rowid", 1, 0, map[string]any{"user": admin.Id})
		if err != nil || len(notices) != 1 || added["notifications"] != 1 {
			t.Fatalf("notices %v of %v, %v", notices, added, err)
		}
		return strings.Fields(notices[0].GetString("body"))[:5]
	}
	user := func(email string) func() error {
		return func() error {
			_, err := e.Login(t.Context(), app, credentials(email, "wrong"), origin, clock)
			return err
		}
	}
	dashboard := func(email string) func() error {
		return func() error {
			_, err := e.SuperuserPassword(t.Context(), app, email, "wrong", "", origin, clock)
			return err
		}
	}
	for name, test := range map[string]struct {
		try  func() error
		want string
	}{
		"a user":                           {user(known.Email()), "[The account " + known.Email() + " was locked]"},
		"nobody":                           {user("nobody@vigil.test"), "[]"},
		"a superuser":                      {dashboard(root.Email()), "[The dashboard account root@vigil.test was]"},
		"no superuser":                     {dashboard("nobody@vigil.test"), "[]"},
		"a superuser's, among the users":   {user(root.Email()), "[]"},
		"a user's, among the superusers":   {dashboard(known.Email()), "[]"},
		"a user's address in capitals too": {dashboard(strings.ToUpper("somebody@vigil.test")), "[]"},
	} {
		if got := fmt.Sprint(lock(test.try)); got != test.want {
			t.Errorf("%s: notified %s, want %s", name, got, test.want)
		}
	}
}

// TestRegister checks that a new account gets a link that sets its password within a day, and that no mail contains the password.
func TestRegister(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine(withResetPage)
	admin := administrator(t, e, app)
	body := auth.RegisterBody{
		Email: validate.Of(" New.Person@Practice.TEST "), Password: validate.Of("Correct-Horse-42"), FirstName: validate.Of("New"), LastName: validate.Of("Person"),
		Role: validate.Of("provider"), TimeZone: validate.Of("America/Denver"), NPI: validate.Of("1234567893"), Phone: validate.Of("312 555 0100"),
	}
	user, err := e.Register(t.Context(), app, admin, body, origin, clock)
	if err != nil {
		t.Fatal(err)
	}
	if user.Email() != "new.person@practice.test" || !user.Active() || user.Role() != "provider" || user.NPI() != "1234567893" || user.Phone() != "312 555 0100" ||
		user.TimeZone() != "America/Denver" || !user.MustChangePassword() || !user.CreatedAt().Equal(clock) {
		t.Errorf("stored %v", user.FieldsData())
	}
	if got := loginCode(t, e, app, user, "Correct-Horse-42", "", clock); got != "" {
		t.Errorf("the password of the registration: %s", got)
	}
	record, err := app.FindFirstRecordByData(collections.Mails, "template", "welcome")
	if err != nil {
		t.Fatal(err)
	}
	mail, err := collections.FindMail(app, record.Id)
	if err != nil {
		t.Fatal(err)
	}
	parameters := mail.Parameters()
	if parameters["email"] != user.Email() || parameters["address"] != "https://vigil.example.org/" || strings.Contains(fmt.Sprint(parameters), "Correct-Horse-42") {
		t.Errorf("welcomed with %v", parameters)
	}
	token := tokenIn(t, parameters["link"])
	wantCode(t, "a day later", setPassword(t, e, app, token, "Next-Lantern-41", clock.Add(24*time.Hour)), "invalid_reset_token")
	wantCode(t, "within a day", setPassword(t, e, app, token, "Next-Lantern-41", clock.Add(24*time.Hour-time.Second)), "")
	if got := recorded(t, app, user); got != "user.create[] auth.password_reset[]" {
		t.Errorf("recorded %s", got)
	}
	body.MustChangePassword, body.Email = validate.Of(false), validate.Of("other@practice.test")
	if other, err := e.Register(t.Context(), app, admin, body, origin, clock); err != nil || other.MustChangePassword() {
		t.Errorf("one who keeps the password: %v", err)
	}
}

func TestRegisterRefuses(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine(withResetPage)
	vigiltest.User(t, app, authz.Nurse, vigiltest.Email("taken@practice.test"))
	here, gone := patient(t, app, "A-1", false), patient(t, app, "A-2", true)
	before := vigiltest.RowCounts(t, app)
	for name, test := range map[string]struct {
		change func(*auth.RegisterBody)
		want   string
	}{
		"everything missing":      {func(b *auth.RegisterBody) { *b = auth.RegisterBody{} }, "email first_name last_name password role"},
		"a taken address":         {func(b *auth.RegisterBody) { b.Email = validate.Of("TAKEN@practice.test") }, "email"},
		"no address":              {func(b *auth.RegisterBody) { b.Email = validate.Of("practice.test") }, "email"},
		"no domain":               {func(b *auth.RegisterBody) { b.Email = validate.Of("new@practice") }, "email"},
		"a Cyrillic letter":       {func(b *auth.RegisterBody) { b.Email = validate.Of("n\u0435w@practice.test") }, "email"},
		"65 before the sign":      {func(b *auth.RegisterBody) { b.Email = validate.Of(strings.Repeat("a", 65) + "@practice.test") }, "email"},
		"two points":              {func(b *auth.RegisterBody) { b.Email = validate.Of("new..person@practice.test") }, "email"},
		"a weak password":         {func(b *auth.RegisterBody) { b.Password = validate.Of("password") }, "password"},
		"the address as password": {func(b *auth.RegisterBody) { b.Password = validate.Of("New@practice.test-1") }, "password"},
		"no role of ours":         {func(b *auth.RegisterBody) { b.Role = validate.Of("boss") }, "role"},
		"a linked nurse":          {func(b *auth.RegisterBody) { b.PatientID = validate.Of(here) }, "patient_id"},
		"no NPI":                  {func(b *auth.RegisterBody) { b.NPI = validate.Of("1234567890") }, "npi"},
		"neither zone nor phone":  {func(b *auth.RegisterBody) { b.TimeZone, b.Phone = validate.Of("x"), validate.Of("x") }, "phone time_zone"},
		"a portal of a deleted one": {func(b *auth.RegisterBody) {
			b.Role, b.PatientID = validate.Of("patient"), validate.Of(gone)
		}, ""},
	} {
		body := auth.RegisterBody{
			Email: validate.Of("new@practice.test"), Password: validate.Of("Correct-Horse-42"), FirstName: validate.Of("Ada"), LastName: validate.Of("Byron"), Role: validate.Of("nurse"),
		}
		test.change(&body)
		_, err := e.Register(t.Context(), app, auth.Caller{}, body, origin, clock)
		if got := wrongFields(err); err == nil || got != test.want {
			t.Errorf("%s: %q is wrong, %v", name, got, err)
		}
	}
	if added := vigiltest.RowsAdded(t, app, before); len(added) > 0 {
		t.Errorf("added %v", added)
	}
	body := auth.RegisterBody{
		Email: validate.Of(strings.Repeat("a", 64) + "@practice.test"), Password: validate.Of("Correct-Horse-42"), FirstName: validate.Of("Ada"), LastName: validate.Of("Byron"),
		Role: validate.Of("patient"), PatientID: validate.Of(here),
	}
	if user, err := e.Register(t.Context(), app, auth.Caller{}, body, origin, clock); err != nil || user.PatientID() != here {
		t.Errorf("a portal account: %v", err)
	}
}
