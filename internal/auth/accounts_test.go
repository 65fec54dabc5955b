package auth_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestPasswordPolicy(t *testing.T) {
	app := newPolicyApp(t)
	const long = "k7 lantern orchard violet ember quartz meadow cobalt harbor juniper slate"
	owner := auth.Owner{Email: "Ada.Lovelace@practice.test", FirstName: "Ada", LastName: "Lovelace"}
	for password, broken := range map[string]string{
		"Correct-Horse-42":                "",
		"Grüße aus Köln 7":                "special",
		"Grüße, aus Köln 7":               "", // spaces and other scripts are welcome
		"Κωδικός-Πρόσβασης-1":             "",
		"Short-1aaaa":                     "12 characters",
		"correct-horse-42":                "upper",
		"CORRECT-HORSE-42":                "lower",
		"Correct-Horse-XX":                "digit",
		"CorrectLanternHorse42":           "special",
		"Aa1-" + long[:67]:                "",
		"Aa1-" + long:                     "71 bytes",
		"Aa1-" + strings.Repeat("é", 34):  "71 bytes",
		"x-Ada.Lovelace@Practice.test-X1": "e-mail address",
		"ada.LOVELACE-1815":               "Must not be made of your name",
		"L0ve-lace-(1815)":                "Must not be made of your name",
		"Love-lace-(1815)":                "Must not be made of your name",
		"Lovelace, Ada 1815":              "Must not be made of your name",
		"V-I-G-i-l-2026!!":                "Must not be made of your name",
		"Vigilant-Orchard-1":              "",
		"12-Ada-34-56-78":                 "Must not be made of your name",
	} {
		problems := auth.PasswordProblems(app, password, owner)
		switch {
		case broken == "" && len(problems) > 0:
			t.Errorf("%q breaks %v", password, problems)
		case broken != "" && (len(problems) != 1 || !strings.Contains(problems[0], broken)):
			t.Errorf("%q breaks %v, want only %s", password, problems, broken)
		}
	}
	if problems := auth.PasswordProblems(app, "", auth.Owner{}); len(problems) != 5 {
		t.Errorf("no password breaks %v", problems)
	}
}

// Passwords that meet the contract's rules and that attackers try first.
func TestGuessablePasswords(t *testing.T) {
	app := newPolicyApp(t)
	owner := auth.Owner{Email: "jane.doe@elm.test", FirstName: "Jane", LastName: "Doe"}
	for _, password := range []string{
		"Password1234!", "P@ssw0rd12345", "Welcome12345!", "Letmein12345!", "Qwertyuiop1!", "Summer2026!!!", "Aaaaaaaaaaa1!", "Winter2026!Winter2026!",
		"Vigil-Vigil-2026!", "V1gil-V1g1l-2026!", "Elm-Street-2026!", "ElmStreetElm1!", "Vigil-Demo-2026!", "Jane-Doe-Jane-1!", "D0e-J4ne-2026!!", "Nurse-Jane-2026!",
		"Violet-Person-1234", "Str0ngP@ssw0rd!2026", "Aa1!Aa1!Aa1!", "Abcdef123456!",
	} {
		if problems := auth.PasswordProblems(app, password, owner); len(problems) != 1 {
			t.Errorf("%q breaks %v", password, problems)
		}
	}
	auth.PermitPassword(app, "Vigil-Demo-2026!")
	if problems := auth.PasswordProblems(app, "Vigil-Demo-2026!", owner); len(problems) > 0 {
		t.Errorf("the demo's password breaks %v", problems)
	}
}

// newPolicyApp returns an app of the practice at Elm Street.
func newPolicyApp(t *testing.T) core.App {
	app := core.NewBaseApp(core.BaseAppConfig{DataDir: t.TempDir()})
	auth.SetPracticeWords(app, "Elm Street Family Practice")
	return app
}

func TestNPI(t *testing.T) {
	for npi, valid := range map[string]bool{
		"1234567893": true, "1245319599": true, "2000000008": false, "1234567890": false, "123456789": false, "12345678933": false,
		"3234567893": false, "": false, "123456789x": false, "１２３４５６７８９３": false,
	} {
		if validate.ValidNPI(npi) != valid {
			t.Errorf("%q: valid is not %v", npi, valid)
		}
	}
}

// TestConcurrentWrongProofs: of concurrent guesses with a stolen access token, only five are evaluated.
func TestConcurrentWrongProofs(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine().WithoutHashPause()
	user := vigiltest.User(t, app, authz.Nurse)
	caller := callerOf(t, e, app, login(t, e, app, user, clock).Access)
	var lock sync.Mutex
	codes := map[string]int{}
	var guesses sync.WaitGroup
	for range 12 {
		guesses.Go(func() {
			err := e.ChangePassword(t.Context(), app, caller, passwordBody("Wrong-Guess-1", "Next-Lantern-41"), origin, clock)
			lock.Lock()
			defer lock.Unlock()
			codes[code(err)]++
		})
	}
	guesses.Wait()
	if codes["validation_error"] != 5 || codes["throttled"] != 7 {
		t.Errorf("codes %v", codes)
	}
	wantCode(t, "the right one", e.ChangePassword(t.Context(), app, caller, passwordBody(vigiltest.Password, "Next-Lantern-41"), origin, clock), "throttled")
	wantCode(t, "signing in is another matter", func() error {
		_, err := e.Login(t.Context(), app, credentials(user.Email(), vigiltest.Password), origin, clock)
		return err
	}(), "")
}

func passwordBody(old, wanted string) auth.PasswordBody {
	return auth.PasswordBody{OldPassword: validate.Of(old), NewPassword: validate.Of(wanted), NewPasswordConfirm: validate.Of(wanted)}
}

// TestConcurrentPasswordChanges: of concurrent changes only one succeeds, because the others proved a password that has changed.
func TestConcurrentPasswordChanges(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Nurse)
	caller := callerOf(t, e, app, login(t, e, app, user, clock).Access)
	results := make([]error, 4)
	var changes sync.WaitGroup
	for i := range results {
		changes.Go(func() {
			results[i] = e.ChangePassword(t.Context(), app, caller, passwordBody(vigiltest.Password, "Wholly-Lantern-9"+string(rune('1'+i))), origin, clock)
		})
	}
	changes.Wait()
	winners := 0
	for i, err := range results {
		_, signedIn := e.Login(t.Context(), app, credentials(user.Email(), "Wholly-Lantern-9"+string(rune('1'+i))), origin, clock)
		if err == nil {
			winners++
		}
		if (err == nil) != (signedIn == nil) {
			t.Errorf("change %d: %v, but signing in: %v", i, err, signedIn)
		}
	}
	if winners != 1 {
		t.Errorf("%d winners: %v", winners, results)
	}
}

func TestResetLinkWorksOnceUnderConcurrency(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	link, err := auth.Invite(app, auth.NewAccount{Email: "new@practice.test", FirstName: "New", LastName: "Person", Role: authz.Nurse},
		"https://vigil.example.org/reset?x=1", audit.System(), clock)
	if err != nil {
		t.Fatal(err)
	}
	_, token, found := strings.Cut(link, "token=")
	if !found || !strings.HasPrefix(link, "https://vigil.example.org/reset?") || !strings.Contains(link, "x=1") {
		t.Fatalf("link %s", link)
	}
	token, _, _ = strings.Cut(token, "&")
	var lock sync.Mutex
	codes := map[string]int{}
	var tries sync.WaitGroup
	for range 5 {
		tries.Go(func() {
			err := e.ConfirmReset(t.Context(), app, auth.ResetBody{
				Token: validate.Of(token), NewPassword: validate.Of("Next-Lantern-41"),
				NewPasswordConfirm: validate.Of("Next-Lantern-41"),
			}, origin, clock.Add(23*time.Hour))
			lock.Lock()
			defer lock.Unlock()
			codes[code(err)]++
		})
	}
	tries.Wait()
	if codes[""] != 1 || codes["invalid_reset_token"]+codes["validation_error"] != 4 { // for a later request the new password equals the current one
		t.Errorf("codes %v", codes)
	}
}

func TestRegistrationSealsNames(t *testing.T) {
	app := vigiltest.NewApp(t)
	_, err := auth.CreateAccount(app, auth.NewAccount{
		Email: "new@practice.test", FirstName: "Wilhelmina", LastName: "Harker", Phone: "312 555 0100",
		Role: authz.Nurse, Password: "Correct-Horse-42",
	}, audit.System(), clock)
	if err != nil {
		t.Fatal(err)
	}
	var stored string
	if err := app.DB().NewQuery("SELECT first_name || last_name || phone FROM users").Row(&stored); err != nil {
		t.Fatal(err)
	}
	for _, plain := range []string{"Wilhelmina", "Harker", "555"} {
		if strings.Contains(stored, plain) {
			t.Errorf("%s is readable on disk", plain)
		}
	}
	user, err := collections.FindUserByEmail(app, "new@practice.test")
	if err != nil || user.FirstName() != "Wilhelmina" || user.Phone() != "312 555 0100" {
		t.Errorf("opened %s, %v", user.FirstName(), err)
	}
}

// TestHugePasswords checks that an overlong password is simply wrong.
func TestHugePasswords(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Nurse)
	_, err := e.Login(t.Context(), app, credentials(user.Email(), vigiltest.Password+strings.Repeat("x", 10_000)), origin, clock)
	wantCode(t, "ten kilobytes", err, "authentication_failed")
}

func BenchmarkLogin(b *testing.B) {
	app := vigiltest.NewApp(b)
	users, err := app.FindCollectionByNameOrId(collections.Users)
	if err != nil {
		b.Fatal(err)
	}
	auth.HashAt(users, 10) // what production uses; tests hash cheaply
	if err := app.Save(users); err != nil {
		b.Fatal(err)
	}
	e := newEngine()
	user := vigiltest.User(b, app, authz.Nurse)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := e.Login(b.Context(), app, credentials(user.Email(), vigiltest.Password), origin, clock); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "logins/s")
}
