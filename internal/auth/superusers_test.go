package auth_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func superuser(t testing.TB, app core.App, email string) *core.Record {
	t.Helper()
	superusers, err := app.FindCachedCollectionByNameOrId(core.CollectionNameSuperusers)
	if err != nil {
		t.Fatal(err)
	}
	record := core.NewRecord(superusers)
	record.SetEmail(email)
	record.SetPassword(vigiltest.Password)
	if err := app.Save(record); err != nil {
		t.Fatal(err)
	}
	return record
}

// dashboard signs superusers in.
type dashboard struct {
	t   *testing.T
	app core.App
	e   *auth.Engine
	now time.Time
}

func newDashboard(t *testing.T, change ...func(*auth.Options)) *dashboard {
	d := &dashboard{t: t, app: vigiltest.NewApp(t), e: newEngine(change...), now: clock}
	superuser(t, d.app, "root@vigil.test")
	return d
}

func (d *dashboard) password(address, password, code string) (auth.SuperuserStep, string) {
	step, err := d.e.SuperuserPassword(d.t.Context(), d.app, address, password, code, origin, d.now)
	return step, refusalOf(err)
}

func refusalOf(err error) string { return code(err) } // where "code" is a parameter

// pendingToken returns the pending token after a right password.
func (d *dashboard) pendingToken() string {
	d.t.Helper()
	step, refused := d.password("root@vigil.test", vigiltest.Password, "")
	if refused != "" || step.PendingToken == "" || step.Record != nil {
		d.t.Fatalf("the password gives %+v, %s", step, refused)
	}
	return step.PendingToken
}

// second returns the error code of the second step.
func (d *dashboard) second(pendingToken, code string) string {
	step, err := d.e.SuperuserCode(d.t.Context(), d.app, pendingToken, code, origin, d.now)
	if (err == nil) != (step.Record != nil) {
		d.t.Errorf("signed in is %v, %v", step.Record != nil, err)
	}
	return refusalOf(err)
}

// enroll gives the superuser an authenticator app.
func (d *dashboard) enroll() (secret string) {
	d.t.Helper()
	setup, err := d.e.ResetSuperuserFactor(d.app, " Root@vigil.TEST", false, audit.System(), d.now)
	if err != nil || !strings.HasPrefix(setup.ProvisioningURI, "otpauth://totp/RPM:root@vigil.test?secret="+setup.Secret+"&") {
		d.t.Fatalf("set up %s, %v", setup.ProvisioningURI, err)
	}
	return setup.Secret
}

func (d *dashboard) token() string {
	d.t.Helper()
	step, refused := d.password("root@vigil.test", vigiltest.Password, "")
	if refused != "" {
		d.t.Fatal(refused)
	}
	token, err := d.e.CompleteSuperuserSignIn(d.app, step.Record, origin, d.now)
	if err != nil {
		d.t.Fatal(err)
	}
	return token
}

// TestSuperuserLock checks that an address locks at the fifth consecutive failure, with or without an account, independent of a user with the
// same address.
func TestSuperuserLock(t *testing.T) {
	d := newDashboard(t)
	user := vigiltest.User(t, d.app, authz.Admin, vigiltest.Email("root@vigil.test"))
	for _, address := range []string{"root@vigil.test", "nobody@vigil.test"} {
		for n := range 5 {
			if _, got := d.password(address, "wrong", ""); got != "authentication_failed" {
				t.Errorf("%s, failure %d: %s", address, n, got)
			}
			if address == "root@vigil.test" && n == 3 {
				if step, got := d.password(" ROOT@vigil.test ", vigiltest.Password, ""); got != "" || step.Record == nil || step.PendingToken != "" {
					t.Errorf("after four: %s", got)
				}
				for range 4 { // the count restarted
					d.password(address, "wrong", "")
				}
			}
		}
		if _, got := d.password(address, vigiltest.Password, ""); got != "account_locked" {
			t.Errorf("%s after five: %s", address, got)
		}
	}
	if got := loginCode(t, d.e, d.app, user, vigiltest.Password, "", clock); got != "" {
		t.Errorf("the user of that address: %s", got)
	}
	d.now = clock.Add(30 * time.Minute)
	if _, got := d.password("root@vigil.test", vigiltest.Password, ""); got != "" {
		t.Errorf("at the end of the lock: %s", got)
	}
	want := strings.Repeat("auth.login_failed ", 9) + "auth.lockout auth.login_failed " + strings.Repeat("auth.login_failed ", 5) + "auth.lockout auth.login_failed auth.login"
	if got := strings.Join(events(t, d.app), " "); got != want {
		t.Errorf("recorded %s", got)
	}
}

func TestUnlockSuperuser(t *testing.T) {
	d := newDashboard(t)
	for _, address := range []string{"root@vigil.test", "nobody@vigil.test"} {
		for range 5 {
			d.password(address, "wrong", "")
		}
	}
	if err := d.e.UnlockSuperuser(d.app, "ROOT@vigil.test", audit.System(), clock); err != nil {
		t.Fatal(err)
	}
	if _, got := d.password("root@vigil.test", vigiltest.Password, ""); got != "" {
		t.Errorf("unlocked: %s", got)
	}
	if _, got := d.password("nobody@vigil.test", "wrong", ""); got != "account_locked" {
		t.Errorf("the other: %s", got)
	}
	if err := d.e.UnlockSuperuser(d.app, "nobody@vigil.test", audit.System(), clock); err != nil {
		t.Error(err)
	}
	var who string
	if err := d.app.DB().NewQuery("SELECT GROUP_CONCAT(actor_type || ' ' || resource_type, ', ') FROM audit_log WHERE event = 'auth.unlock'").Row(&who); err != nil ||
		who != "system Superuser, system LoginKey" {
		t.Errorf("recorded %q, %v", who, err)
	}
}

// TestSuperuserSecondStep checks that a code works once, in time, and only with the pending token.
func TestSuperuserSecondStep(t *testing.T) {
	d := newDashboard(t)
	token := d.token()
	secret := d.enroll()
	at := func(after time.Duration) string { return codeFor(t, secret, clock.Add(after)) }
	pending := d.pendingToken()
	userToken := login(t, d.e, d.app, vigiltest.User(t, d.app, authz.Admin), clock).Access
	whole, err := d.e.SignSuperuser(reload(t, d.app, "root@vigil.test"), clock, clock)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ pending, code, want string }{
		"no pending token":           {"", at(0), "token_invalid"},
		"not a token":                {"x.y.z", at(0), "token_invalid"},
		"a user's token":             {userToken, at(0), "token_invalid"},
		"a token of before":          {token, at(0), "token_invalid"},
		"a whole token":              {whole, at(0), "token_invalid"},
		"a wrong code":               {pending, "000000", "authentication_failed"},
		"no code":                    {pending, "", "authentication_failed"},
		"what is no time-based code": {pending, "abcde-fghjk", "authentication_failed"},
	} {
		if got := d.second(test.pending, test.code); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if got := failureCount(t, d.app); got != 3 {
		t.Errorf("%d failures counted", got)
	}
	if _, err := d.e.Holder(d.app, pending, clock); code(err) != "token_invalid" {
		t.Errorf("a pending token is accepted: %v", err)
	}
	if got := d.second(pending, at(0)); got != "" {
		t.Errorf("the code: %s", got)
	}
	if got := failureCount(t, d.app); got != 0 {
		t.Errorf("%d failures are left", got)
	}
	if got := d.second(pending, at(0)); got != "authentication_failed" {
		t.Errorf("the code again: %s", got)
	}
	if _, got := d.password("root@vigil.test", vigiltest.Password, at(0)); got != "authentication_failed" {
		t.Errorf("the code again, with the password: %s", got)
	}
	if _, got := d.password("root@vigil.test", "wrong", at(30*time.Second)); got != "authentication_failed" {
		t.Errorf("the next code with a wrong password: %s", got)
	}
	if step, got := d.password("root@vigil.test", vigiltest.Password, at(30*time.Second)); got != "" || step.Record == nil {
		t.Errorf("both at once: %s", got)
	}
	d.now = clock.Add(5*time.Minute - time.Second)
	if got := d.second(pending, codeFor(t, secret, d.now)); got != "" {
		t.Errorf("in the last second: %s", got)
	}
	d.now = clock.Add(5 * time.Minute)
	if got := d.second(pending, codeFor(t, secret, d.now)); got != "token_expired" {
		t.Errorf("five minutes later: %s", got)
	}
	pending = d.pendingToken()
	for range 5 {
		d.second(pending, "000000")
	}
	if got := d.second(pending, codeFor(t, secret, d.now.Add(30*time.Second))); got != "account_locked" {
		t.Errorf("after five wrong codes: %s", got)
	}
	if _, got := d.password("root@vigil.test", vigiltest.Password, ""); got != "account_locked" {
		t.Errorf("after five wrong codes the password: %s", got)
	}
}

// TestSuperuserChangesDuringSignIn checks that a pending token ends when the password changes or the account is deleted.
func TestSuperuserChangesDuringSignIn(t *testing.T) {
	for name, change := range map[string]func(core.App, *core.Record) error{
		"another password": func(app core.App, r *core.Record) error {
			r.SetPassword("Another-Horse-43")
			return app.Save(r)
		},
		"no account": func(app core.App, r *core.Record) error { return app.Delete(r) },
	} {
		d := newDashboard(t)
		superuser(t, d.app, "other@vigil.test") // the last one cannot go
		secret := d.enroll()
		pending := d.pendingToken()
		if err := change(d.app, reload(t, d.app, "root@vigil.test")); err != nil {
			t.Fatal(err)
		}
		if got := d.second(pending, codeFor(t, secret, clock)); got != "token_invalid" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestSuperusersNeedTheirSecondFactor checks that a required second factor refuses a superuser without one.
func TestSuperusersNeedTheirSecondFactor(t *testing.T) {
	d := newDashboard(t, func(o *auth.Options) { o.SuperuserTwoFactor = true })
	if step, got := d.password("root@vigil.test", vigiltest.Password, ""); got != "two_factor_setup_required" || step.Record != nil || step.PendingToken != "" {
		t.Errorf("without one: %s", got)
	}
	if step, got := d.password("root@vigil.test", vigiltest.Password, "123456"); got != "authentication_failed" || step.Record != nil {
		t.Errorf("with a code of none: %s", got)
	}
	secret := d.enroll()
	if got := d.second(d.pendingToken(), codeFor(t, secret, clock)); got != "" {
		t.Errorf("with one: %s", got)
	}
	setup, err := d.e.ResetSuperuserFactor(d.app, "root@vigil.test", true, audit.System(), clock)
	if err != nil || setup.Secret != "" || setup.ProvisioningURI != "" {
		t.Errorf("none: %v", err)
	}
	if _, got := d.password("root@vigil.test", vigiltest.Password, ""); got != "two_factor_setup_required" {
		t.Errorf("taken away: %s", got)
	}
	_, err = d.e.ResetSuperuserFactor(d.app, "nobody@vigil.test", false, audit.System(), clock)
	wantCode(t, "nobody", err, "not_found")
}

// TestResetSuperuserFactor checks that a new second factor ends the lockout, every session and the old factor.
func TestResetSuperuserFactor(t *testing.T) {
	d := newDashboard(t)
	first := d.enroll()
	if got := d.second(d.pendingToken(), codeFor(t, first, clock)); got != "" {
		t.Fatal(got)
	}
	token, err := d.e.SignSuperuser(reload(t, d.app, "root@vigil.test"), clock, clock)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		d.password("root@vigil.test", "wrong", "")
	}
	second := d.enroll()
	if first == second {
		t.Error("the same secret again")
	}
	_, err = d.e.SuperuserTokenExpiry(d.app, token, clock)
	wantCode(t, "the session of before", err, "token_invalid")
	pending := d.pendingToken()
	if got := d.second(pending, codeFor(t, first, clock.Add(30*time.Second))); got != "authentication_failed" {
		t.Errorf("the factor of before: %s", got)
	}
	if got := d.second(pending, codeFor(t, second, clock)); got != "" {
		t.Errorf("the new factor: %s", got)
	}
	if text := fmt.Sprintf("%v %+v %s", auth.Setup{Secret: second}, auth.Setup{Secret: second}, auth.Setup{Secret: second}.LogValue()); strings.Contains(text, second) {
		t.Error("a set-up prints its secret")
	}
}

// TestSuperuserSession checks that a token lasts an hour and its session twelve, regardless of renewals.
func TestSuperuserSession(t *testing.T) {
	d := newDashboard(t)
	began := d.token()
	until := func(token string, now time.Time) time.Time {
		t.Helper()
		end, err := d.e.SuperuserTokenExpiry(d.app, token, now)
		if err != nil {
			t.Fatal(err)
		}
		return end
	}
	if end := until(began, clock); !end.Equal(clock.Add(time.Hour)) {
		t.Errorf("a token ends at %v", end)
	}
	_, err := d.e.RenewSuperuser(d.app, began, clock.Add(time.Hour))
	wantCode(t, "renewed an hour later", err, "token_expired")
	token := began
	for after := 50 * time.Minute; after < 12*time.Hour; after += 50 * time.Minute {
		at := clock.Add(after)
		if token, err = d.e.RenewSuperuser(d.app, token, at); err != nil {
			t.Fatalf("after %v: %v", after, err)
		}
		want := min(after+time.Hour, 12*time.Hour)
		if end := until(token, at); !end.Equal(clock.Add(want)) {
			t.Errorf("renewed after %v it ends at %v", after, end)
		}
	}
	last := clock.Add(12 * time.Hour)
	if holder, err := d.e.Holder(d.app, token, last.Add(-time.Second)); err != nil || holder.Email() != "root@vigil.test" {
		t.Errorf("in the last second: %v", err)
	}
	_, err = d.e.RenewSuperuser(d.app, token, last)
	wantCode(t, "renewed after twelve hours", err, "token_expired")
	_, err = d.e.Holder(d.app, token, last)
	wantCode(t, "after twelve hours", err, "token_invalid") // like an unknown token

	rows, err := collections.AuditRows(d.app, "", "~", 10)
	if err != nil || len(rows) != 1 || rows[0].Event != "auth.login" || rows[0].ActorType != "superuser" || rows[0].ActorEmail != "root@vigil.test" {
		t.Errorf("recorded %+v, %v", rows, err)
	}
}

// TestHolder checks that PocketBase's endpoints accept both kinds of accounts, and that a superuser's token is not a user's.
func TestHolder(t *testing.T) {
	d := newDashboard(t)
	user := vigiltest.User(t, d.app, authz.Nurse)
	session := login(t, d.e, d.app, user, clock)
	token := d.token()
	if holder, err := d.e.Holder(d.app, session.Access, clock); err != nil || holder.Id != user.Id {
		t.Errorf("a user's: %v", err)
	}
	if holder, err := d.e.Holder(d.app, token, clock); err != nil || holder.Collection().Name != core.CollectionNameSuperusers {
		t.Errorf("a superuser's: %v", err)
	}
	_, err := d.e.AuthenticatePassively(d.app, token, clock)
	wantCode(t, "a superuser among the users", err, "token_invalid")
	_, err = d.e.SuperuserTokenExpiry(d.app, session.Access, clock)
	wantCode(t, "a user among the superusers", err, "token_invalid")
	_, err = d.e.Holder(d.app, "", clock)
	wantCode(t, "none", err, "not_authenticated")
	_, err = d.e.Holder(d.app, session.Access, clock.Add(15*time.Minute))
	wantCode(t, "a user's, later", err, "token_expired")
	superuser(t, d.app, "other@vigil.test")
	if err := d.app.Delete(reload(t, d.app, "root@vigil.test")); err != nil {
		t.Fatal(err)
	}
	_, err = d.e.Holder(d.app, token, clock)
	wantCode(t, "of who is gone", err, "token_invalid")
}

func reload(t testing.TB, app core.App, email string) *core.Record {
	t.Helper()
	record, err := app.FindAuthRecordByEmail(core.CollectionNameSuperusers, email)
	if err != nil {
		t.Fatal(err)
	}
	return record
}
