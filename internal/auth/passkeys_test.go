package auth_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// key is a device with a passkey, its browser, and its owner.
type key struct {
	t      *testing.T
	app    core.App
	e      *auth.Engine
	now    time.Time
	user   *collections.User
	caller auth.Caller
	party  virtualwebauthn.RelyingParty
	device virtualwebauthn.Authenticator
	secret virtualwebauthn.Credential
	stored *collections.Passkey
}

func newKeys(t *testing.T, role authz.Role, options ...vigiltest.UserOption) *key {
	t.Helper()
	app, e := vigiltest.NewApp(t), newEngine(freshFor(10*time.Minute), withResetPage)
	k := &key{t: t, app: app, e: e, now: clock, user: vigiltest.User(t, app, role, options...)}
	k.caller, _ = signedIn(t, e, app, k.user, clock)
	return k.another()
}

// another returns a second device of the same user.
func (k *key) another() *key {
	other := *k
	other.party = virtualwebauthn.RelyingParty{ID: "vigil.example.org", Name: "RPM", Origin: "https://vigil.example.org"}
	other.device, other.stored = virtualwebauthn.NewAuthenticator(), nil
	// The library writes coordinates without leading zeros, which browsers do not: discard such keys.
	for other.secret = (virtualwebauthn.Credential{}); other.secret.Key == nil || len(other.secret.Key.AttestationData()) != 77; {
		other.secret = virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2)
	}
	return &other
}

func (k *key) offer(proof auth.PasswordProof) (json.RawMessage, error) {
	creation, err := k.e.PasskeyRegistration(k.t.Context(), k.app, k.caller, proof, origin, k.now)
	if err != nil {
		return nil, err
	}
	return k.create(creation), nil
}

func (k *key) create(options any) json.RawMessage {
	k.t.Helper()
	text, err := json.Marshal(options)
	if err != nil {
		k.t.Fatal(err)
	}
	asked, err := virtualwebauthn.ParseAttestationOptions(string(text))
	if err != nil {
		k.t.Fatal(err)
	}
	k.device.Options.UserHandle = []byte(asked.UserID)
	return json.RawMessage(virtualwebauthn.CreateAttestationResponse(k.party, k.device, k.secret, *asked))
}

func (k *key) made() json.RawMessage {
	k.t.Helper()
	made, err := k.offer(auth.PasswordProof{})
	if err != nil {
		k.t.Fatal(err)
	}
	return made
}

func (k *key) register(name string, made json.RawMessage) error {
	body := auth.PasskeyBody{Name: validate.Of(name), Credential: validate.Of(made)}
	stored, err := k.e.RegisterPasskey(k.t.Context(), k.app, k.caller, body, origin, k.now)
	k.stored = stored
	return err
}

// enrolled registers the device's passkey.
func (k *key) enrolled() *key {
	k.t.Helper()
	if err := k.register("Desk key", k.made()); err != nil {
		k.t.Fatal(err)
	}
	return k
}

func (k *key) id() string { return k.stored.Id }

// show returns the device's assertion for a step; "" for a passkey alone.
func (k *key) show(step string) (json.RawMessage, error) {
	k.t.Helper()
	body := auth.TemporaryTokenBody{}
	if step != "" {
		body.TemporaryToken = validate.Of(step)
	}
	asked, err := k.e.PasskeyAssertion(k.app, body, k.now)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(asked)
	if err != nil {
		k.t.Fatal(err)
	}
	options, err := virtualwebauthn.ParseAssertionOptions(string(text))
	if err != nil {
		k.t.Fatal(err)
	}
	k.secret.Counter++
	return json.RawMessage(virtualwebauthn.CreateAssertionResponse(k.party, k.device, k.secret, *options)), nil
}

func (k *key) signIn(step string) (auth.Session, string) {
	k.t.Helper()
	shown, err := k.show(step)
	if err != nil {
		return auth.Session{}, code(err)
	}
	return k.use(step, shown)
}

func (k *key) use(step string, shown json.RawMessage) (auth.Session, string) {
	body := auth.AssertionBody{Credential: validate.Of(shown), DeviceID: validate.Of("phone-1")}
	if step != "" {
		body.TemporaryToken = validate.Of(step)
	}
	session, err := k.e.SignInWithPasskey(k.t.Context(), k.app, body, origin, k.now)
	return session, code(err)
}

// forge answers a challenge that the service never issued.
func (k *key) forge() string {
	k.secret.Counter++
	shown := virtualwebauthn.CreateAssertionResponse(k.party, k.device, k.secret, virtualwebauthn.AssertionOptions{Challenge: make([]byte, 56), RelyingPartyID: k.party.ID})
	_, got := k.use("", json.RawMessage(shown))
	return got
}

// step returns the temporary token after a right password.
func (k *key) step(methods ...string) string {
	k.t.Helper()
	_, err := k.e.Login(k.t.Context(), k.app, credentials(k.user.Email(), vigiltest.Password), origin, k.now)
	refused := faultOf(k.t, err)
	if got, _ := refused.Extra["methods"].([]string); refused.Code != "totp_required" || !slices.Equal(got, methods) {
		k.t.Errorf("asked %s for %v, want %v", refused.Code, got, methods)
	}
	return refused.Extra["temporary_token"].(string)
}

func (k *key) want(what, got, want string) {
	k.t.Helper()
	if got != want {
		k.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestPasskeySignIn checks that a passkey signs in alone and as the second step, until it is removed.
func TestPasskeySignIn(t *testing.T) {
	k := newKeys(t, authz.Provider).enrolled()
	session, refused := k.signIn("")
	if refused != "" || session.User.Id != k.user.Id {
		t.Fatalf("alone: %s", refused)
	}
	caller := callerOf(t, k.e, k.app, session.Access)
	if !caller.TwoFactor || caller.RecordID != k.user.Id {
		t.Errorf("signed in as %+v", caller)
	}
	session, refused = k.signIn(k.step("passkey"))
	k.want("as the second step", refused, "")
	if got := loginCode(t, k.e, k.app, k.user, vigiltest.Password, "123456", clock); got != "totp_required" { // no code stands for a passkey
		t.Errorf("a code: %s", got)
	}
	renamed, err := k.e.RenamePasskey(k.app, k.caller, k.id(), auth.PasskeyName{Name: validate.Of("Red key")}, origin, clock)
	if err != nil || renamed.Name() != "Red key" {
		t.Errorf("renamed: %v", err)
	}
	_, err = k.e.RenamePasskey(k.app, k.caller, k.id(), auth.PasskeyName{Name: validate.Of(" ")}, origin, clock)
	k.want("no name", wrongFields(err), "name")
	k.want("the last factor goes", code(k.e.RemovePasskey(t.Context(), k.app, k.caller, k.id(), auth.PasswordProof{}, origin, clock)), "")
	_, err = refresh(k.e, k.app, session.Refresh, clock)
	wantCode(t, "a session with it", err, "token_revoked")
	_, refused = k.signIn("")
	k.want("taken away", refused, "authentication_failed")
	k.want("the password alone", loginCode(t, k.e, k.app, k.user, vigiltest.Password, "", clock), "")
	if got := mails(t, k.app); got != "passkey_added passkey_removed" {
		t.Errorf("mails: %s", got)
	}
	want := "auth.passkey_register[passkey] auth.passkey_used[passkey] auth.passkey_used[passkey] auth.password_accepted[] " +
		"auth.passkey_rename[name passkey] auth.passkey_remove[name passkey]"
	if got := strings.ReplaceAll(recorded(t, k.app, k.user), " auth.password_accepted[]", ""); got != strings.ReplaceAll(want, " auth.password_accepted[]", "") {
		t.Errorf("recorded %s", got)
	}
}

// TestPasskeyRefusals checks that an assertion that deviates from the request is refused and counts as one failure.
func TestPasskeyRefusals(t *testing.T) {
	practice := newKeys(t, authz.Admin)
	alone := func(change func(*key)) func(*key) string {
		return func(k *key) string {
			change(k)
			_, got := k.signIn("")
			return got
		}
	}
	second := func(change func(*key)) func(*key) string {
		return func(k *key) string {
			change(k)
			_, got := k.signIn(k.step("passkey"))
			return got
		}
	}
	shown := func(k *key, step string) json.RawMessage {
		answer, err := k.show(step)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for name, try := range map[string]func(*key) string{
		"another origin":           alone(func(k *key) { k.party.Origin = "https://evil.example" }),
		"another port":             alone(func(k *key) { k.party.Origin += ":8443" }),
		"no encryption":            second(func(k *key) { k.party.Origin = "http://vigil.example.org" }),
		"another relying party":    second(func(k *key) { k.party.ID = "evil.example" }),
		"user not verified, alone": alone(func(k *key) { k.device.Options.UserNotVerified = true }),
		"user not present":         second(func(k *key) { k.device.Options.UserNotPresent = true }),
		"another key":              alone(func(k *key) { k.secret.Key = k.another().secret.Key }),
		"another owner's handle":   alone(func(k *key) { k.device.Options.UserHandle = []byte("somebody else") }),
		"no handle":                alone(func(k *key) { k.device.Options.UserHandle = nil }),
		"may suddenly be copied":   alone(func(k *key) { k.device.Options.BackupEligible = true }),
		"a made-up challenge":      (*key).forge,
		"used twice": func(k *key) string {
			answer := shown(k, "")
			_, first := k.use("", answer)
			k.want("the first use", first, "")
			_, got := k.use("", answer)
			return got
		},
		"used twice, of a device that counts nothing": func(k *key) string {
			k.secret.Counter = math.MaxUint32 // the counter wraps to zero
			answer := shown(k, "")
			_, first := k.use("", answer)
			k.want("the first use", first, "")
			_, got := k.use("", answer)
			return got
		},
		"of a passkey alone, as second step": func(k *key) string {
			_, got := k.use(k.step("passkey"), shown(k, ""))
			return got
		},
		"of a second step, alone": func(k *key) string {
			_, got := k.use("", shown(k, k.step("passkey")))
			return got
		},
		"of another password's step": func(k *key) string {
			_, got := k.use(k.step("passkey"), shown(k, k.step("passkey")))
			return got
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := practice.another()
			k.t, k.user = t, vigiltest.User(t, k.app, authz.Nurse)
			k.caller, _ = signedIn(t, k.e, k.app, k.user, clock)
			k.enrolled()
			before := failureCount(t, k.app)
			k.want("opens", try(k), "authentication_failed")
			if got := failureCount(t, k.app) - before; got != 1 {
				t.Errorf("%d failures counted", got)
			}
		})
	}
}

// TestPasskeyAsSecondFactorOnly checks that a device without user verification works as a second factor, and that an invalid credential is
// refused before any lookup.
func TestPasskeyAsSecondFactorOnly(t *testing.T) {
	k := newKeys(t, authz.MA)
	k.device.Options.UserNotVerified = true
	k.enrolled()
	_, refused := k.signIn(k.step("passkey"))
	k.want("as the second step", refused, "")
	before := vigiltest.RowCounts(t, k.app)
	_, err := k.e.SignInWithPasskey(t.Context(), k.app, auth.AssertionBody{
		Credential: validate.Of(json.RawMessage(`{"id":"x"}`)), DeviceID: validate.Of(strings.Repeat("x", 129)),
	}, origin, clock)
	k.want("no credential", wrongFields(err), "credential device_id")
	if added := vigiltest.RowsAdded(t, k.app, before); len(added) > 0 {
		t.Errorf("added %v", added)
	}
	_, err = k.e.PasskeyAssertion(k.app, auth.TemporaryTokenBody{TemporaryToken: validate.Of("st_unknown")}, clock)
	wantCode(t, "an unknown step", err, "authentication_failed")
}

// TestExpiredPasskeyChallenges checks that challenges and temporary tokens expire after five minutes, and that a late use does not count as a
// failure.
func TestExpiredPasskeyChallenges(t *testing.T) {
	k := newKeys(t, authz.Nurse).enrolled()
	late, err := k.show("")
	if err != nil {
		t.Fatal(err)
	}
	step, unused := k.step("passkey"), k.step("passkey")
	k.now = clock.Add(5*time.Minute - time.Second)
	_, refused := k.use("", late)
	k.want("in the last second", refused, "")
	if late, err = k.show(step); err != nil {
		t.Fatal(err)
	}
	k.now = clock.Add(5 * time.Minute)
	_, refused = k.use(step, late)
	k.want("the step five minutes later", refused, "authentication_failed")
	_, refused = k.signIn(unused)
	k.want("the step five minutes later, asked", refused, "authentication_failed")
	late, err = k.show("")
	if err != nil {
		t.Fatal(err)
	}
	k.now = clock.Add(10 * time.Minute)
	_, refused = k.use("", late)
	k.want("the challenge five minutes later", refused, "authentication_failed")
	if got := failureCount(t, k.app); got != 0 {
		t.Errorf("%d failures counted", got)
	}
	step = k.step("passkey")
	_, refused = k.signIn(step)
	k.want("a step", refused, "")
	_, refused = k.signIn(step)
	k.want("a step that had its use", refused, "authentication_failed")
	step = k.step("passkey")
	changeTokenKey(t, k.app, k.user)
	_, refused = k.signIn(step)
	k.want("a step of the password before", refused, "authentication_failed")
}

// TestPasskeyOfUnusableAccounts checks that an inactive account and a role without passkeys refuse passkeys, and that a lock of the password does
// not.
func TestPasskeyOfUnusableAccounts(t *testing.T) {
	k := newKeys(t, authz.Nurse).enrolled()
	admin := administrator(t, k.e, k.app)
	signIn := func() string { _, refused := k.signIn(""); return refused }
	stranger := *k.another()
	k.want("an unknown passkey", func() string { _, refused := stranger.signIn(""); return refused }(), "authentication_failed")
	if got := failureCount(t, k.app); got != 0 {
		t.Errorf("%d failures counted for an unknown passkey", got)
	}
	for range 4 {
		k.want("a forgery", k.forge(), "authentication_failed")
	}
	k.want("after four", signIn(), "")
	for range 5 {
		k.want("a forgery", k.forge(), "authentication_failed")
	}
	k.want("the password after five", loginCode(t, k.e, k.app, k.user, vigiltest.Password, "", clock), "account_locked")
	k.want("a forgery while locked", k.forge(), "authentication_failed")
	k.want("the passkey alone while locked", signIn(), "") // a stranger cannot keep its owner out
	k.want("the password afterwards", loginCode(t, k.e, k.app, k.user, vigiltest.Password, "", clock), "totp_required")
	if _, err := k.e.Deactivate(k.app, admin, k.user.Id, origin, clock); err != nil {
		t.Fatal(err)
	}
	k.want("closed", signIn(), "authentication_failed")
	if _, err := k.e.Activate(k.app, admin, k.user.Id, origin, clock); err != nil {
		t.Fatal(err)
	}
	k.want("open again", signIn(), "")
	if _, err := k.e.UpdateUser(t.Context(), k.app, admin, k.user.Id, auth.UserPatch{Role: validate.Of("patient"), CurrentPassword: validate.Of(vigiltest.Password)}, origin, clock); err != nil {
		t.Fatal(err)
	}
	k.want("of a role without passkeys", signIn(), "authentication_failed")
	k.want("its password alone", loginCode(t, k.e, k.app, k.user, vigiltest.Password, "", clock), "")
}

// TestPasskeyOfAnotherUser checks that another user's passkey is no second factor and cannot be changed.
func TestPasskeyOfAnotherUser(t *testing.T) {
	mine := newKeys(t, authz.Nurse).enrolled()
	theirs := mine.another()
	theirs.user = vigiltest.User(t, mine.app, authz.Provider)
	theirs.caller, _ = signedIn(t, mine.e, mine.app, theirs.user, clock)
	theirs.enrolled()
	_, refused := theirs.signIn(mine.step("passkey"))
	mine.want("another's as second step", refused, "authentication_failed")
	for _, id := range []string{mine.id(), "", "nobody"} {
		_, err := theirs.e.RenamePasskey(theirs.app, theirs.caller, id, auth.PasskeyName{Name: validate.Of("Mine")}, origin, clock)
		wantCode(t, "renaming "+id, err, "not_found")
		wantCode(t, "removing "+id, theirs.e.RemovePasskey(t.Context(), theirs.app, theirs.caller, id, auth.PasswordProof{}, origin, clock), "not_found")
	}
	if n := vigiltest.RowCounts(t, mine.app)["passkeys"]; n != 2 {
		t.Errorf("%d passkeys", n)
	}
}

func TestPasskeyRegistration(t *testing.T) {
	k := newKeys(t, authz.Admin)
	user := vigiltest.User(t, k.app, authz.Nurse)
	other, again := k.another(), k.another()
	other.caller, _ = signedIn(t, k.e, k.app, user, clock)
	again.caller, _ = signedIn(t, k.e, k.app, k.user, clock)
	k.want("of another's challenge", code(k.register("Key", other.made())), "invalid_passkey")
	k.want("of another session's challenge", code(k.register("Key", again.made())), "invalid_passkey")
	made := k.made()
	k.want("no name", wrongFields(k.register("", made)), "name")
	k.want("101 letters", wrongFields(k.register(strings.Repeat("x", 101), made)), "name")
	k.want("no credential", wrongFields(k.register("Key", json.RawMessage(`"text"`))), "credential")
	k.want("the first", code(k.register("Key", made)), "")
	k.want("its challenge again", code(k.register("Key", made)), "invalid_passkey")
	k.want("the same device", code(k.register("Key", k.made())), "already_registered")
	for _, wrong := range []virtualwebauthn.RelyingParty{{ID: "evil.example", Origin: k.party.Origin}, {ID: k.party.ID, Origin: "https://evil.example"}} {
		elsewhere := k.another()
		elsewhere.party = wrong
		k.want("elsewhere", code(elsewhere.register("Key", elsewhere.made())), "invalid_passkey")
	}
	slow := k.another()
	made = slow.made()
	slow.now = clock.Add(5 * time.Minute)
	k.want("too slow", code(slow.register("Key", made)), "invalid_passkey")
	for range 9 {
		k.another().enrolled()
	}
	_, err := k.another().offer(auth.PasswordProof{})
	wantCode(t, "an eleventh", err, "too_many_passkeys")
	if n := vigiltest.RowCounts(t, k.app)["passkeys"]; n != 10 {
		t.Errorf("%d passkeys", n)
	}
}

// TestPasskeyReauthentication checks that a registration begun while the sign-in was fresh may be finished later, and that otherwise registering
// and removing require the password.
func TestPasskeyReauthentication(t *testing.T) {
	k := newKeys(t, authz.Nurse)
	k.now = clock.Add(10 * time.Minute)
	made := k.made()
	k.now = k.now.Add(time.Second)
	_, err := k.another().offer(auth.PasswordProof{})
	wantCode(t, "begun later", err, "reauthentication_required")
	_, err = k.another().offer(passwordProof("wrong"))
	wantCode(t, "begun with a wrong password", err, "authentication_failed")
	_, err = k.another().offer(passwordProof(vigiltest.Password))
	wantCode(t, "begun with the password", err, "")
	k.want("no challenge", code(k.another().register("Key", json.RawMessage(`{}`))), "reauthentication_required")
	k.want("finished later", code(k.register("Key", made)), "")
	k.want("removed later", code(k.e.RemovePasskey(t.Context(), k.app, k.caller, k.id(), auth.PasswordProof{}, origin, k.now)), "reauthentication_required")
	other := k.another()
	made = func() json.RawMessage { made, _ := other.offer(passwordProof(vigiltest.Password)); return made }()
	changeTokenKey(t, k.app, k.user)
	k.want("of a challenge before a new password", code(other.register("Key", made)), "reauthentication_required")
	k.want("removed with the password", code(k.e.RemovePasskey(t.Context(), k.app, k.caller, k.id(), passwordProof(vigiltest.Password), origin, k.now)), "")
}

// TestPasskeyBesideTOTP checks a passkey in addition to TOTP, and that an administrator's reset removes all factors.
func TestPasskeyBesideTOTP(t *testing.T) {
	k := newKeys(t, authz.Nurse)
	admin := administrator(t, k.e, k.app)
	setup, err := k.e.SetUpTwoFactor(t.Context(), k.app, k.caller, auth.PasswordProof{}, origin, clock)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, "verified", k.e.VerifyTwoFactor(k.app, k.caller, codeBody(codeFor(t, setup.Secret, clock)), origin, clock), "")
	k.step("totp", "backup_code")
	k.enrolled()
	session, refused := k.signIn(k.step("totp", "backup_code", "passkey"))
	k.want("the passkey", refused, "")
	k.want("a backup code", loginCode(t, k.e, k.app, k.user, vigiltest.Password, setup.BackupCodes[0], clock), "")
	k.want("removed", code(k.e.RemovePasskey(t.Context(), k.app, k.caller, k.id(), auth.PasswordProof{}, origin, clock)), "")
	session, err = refresh(k.e, k.app, session.Refresh, clock)
	wantCode(t, "a session while a factor is left", err, "")
	k.another().enrolled()
	k.another().enrolled()
	wantCode(t, "reset", k.e.ResetTwoFactor(t.Context(), k.app, admin, k.user.Id, auth.CurrentPasswordBody{CurrentPassword: validate.Of(vigiltest.Password)}, origin, clock), "")
	_, err = refresh(k.e, k.app, session.Refresh, clock)
	wantCode(t, "a session of before", err, "token_revoked")
	k.want("the password alone", loginCode(t, k.e, k.app, k.user, vigiltest.Password, "", clock), "")
	if n := vigiltest.RowCounts(t, k.app); n["passkeys"]+n["backup_codes"] != 0 {
		t.Errorf("left are %d and %d", n["passkeys"], n["backup_codes"])
	}
	wantCode(t, "reset again", k.e.ResetTwoFactor(t.Context(), k.app, admin, k.user.Id, auth.CurrentPasswordBody{CurrentPassword: validate.Of(vigiltest.Password)}, origin, clock), "invalid_state")
	wantCode(t, "reset of nobody", k.e.ResetTwoFactor(t.Context(), k.app, admin, "nobody", auth.CurrentPasswordBody{CurrentPassword: validate.Of(vigiltest.Password)}, origin, clock), "not_found")
	if got := mails(t, k.app); got != "backup_code_used passkey_added passkey_added passkey_added passkey_removed passkey_removed passkey_removed two_factor_disabled two_factor_enabled" {
		t.Errorf("mails: %s", got)
	}
}

// TestClonedPasskey checks that the owner is notified of a counter that went backwards, and that passkeys with the newer counter still work.
func TestClonedPasskey(t *testing.T) {
	k := newKeys(t, authz.Provider).enrolled()
	k.secret.Counter = 7
	_, refused := k.signIn("")
	k.want("the owner", refused, "")
	thief := *k
	thief.secret.Counter = 7 - 1 // shows the count 7 again
	_, refused = thief.signIn("")
	k.want("the copy", refused, "authentication_failed")
	_, refused = k.signIn("")
	k.want("the owner again", refused, "")
	if got := mails(t, k.app); got != "passkey_added passkey_refused" {
		t.Errorf("mails: %s", got)
	}
	if got := events(t, k.app); !slices.Contains(got, "auth.passkey_refused") {
		t.Errorf("recorded %v", got)
	}
}

// TestPasskeysNeedAHostName checks that passkeys are unavailable if the service has an IP address only.
func TestPasskeysNeedAHostName(t *testing.T) {
	k := newKeys(t, authz.Nurse).enrolled()
	for _, at := range []string{"", "http://127.0.0.1:8090", "https://[2001:db8::1]", "https://[2001:db8::1]:443/x", "%zz"} {
		nameless := *k
		nameless.e = newEngine(freshFor(time.Hour), func(o *auth.Options) { o.SignInURL = at })
		_, err := nameless.offer(auth.PasswordProof{})
		wantCode(t, at+" offers", err, "passkeys_unavailable")
		wantCode(t, at+" registers", nameless.register("Key", json.RawMessage(`{}`)), "passkeys_unavailable")
		_, err = nameless.show("")
		wantCode(t, at+" asks", err, "passkeys_unavailable")
		_, refused := nameless.use("", json.RawMessage(`{}`))
		k.want(at+" takes", refused, "passkeys_unavailable")
		nameless.step() // the factor still counts, though this server cannot accept it
	}
}

// TestRequiredSecondFactor checks that either kind of second factor satisfies the requirement of a role.
func TestRequiredSecondFactor(t *testing.T) {
	k := newKeys(t, authz.Admin)
	k.e = newEngine(freshFor(time.Hour), withResetPage, func(o *auth.Options) { o.RequireTwoFactor.Roles = []authz.Role{authz.Admin, authz.Provider} })
	needs := func(user *collections.User) bool {
		t.Helper()
		caller, err := k.e.AuthenticatePassively(k.app, vigiltest.Token(t, user, clock), clock)
		if err != nil {
			t.Fatal(err)
		}
		return caller.NeedsTwoFactor
	}
	if !needs(k.user) || needs(vigiltest.User(t, k.app, authz.Nurse)) || needs(vigiltest.User(t, k.app, authz.Provider, vigiltest.TwoFactor(secret))) {
		t.Error("the wrong people need one")
	}
	k.enrolled()
	if needs(k.user) {
		t.Error("a passkey is none")
	}
	wantCode(t, "removed", k.e.RemovePasskey(t.Context(), k.app, k.caller, k.id(), auth.PasswordProof{}, origin, clock), "")
	if !needs(k.user) {
		t.Error("one that was removed still counts")
	}
}

func faultOf(t testing.TB, err error) *fault.Error {
	t.Helper()
	refused, ok := err.(*fault.Error) //nolint:errorlint // as it is returned
	if !ok {
		t.Fatalf("%v is no fault", err)
	}
	return refused
}
