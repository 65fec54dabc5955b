package auth_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestPasswordPolicy(t *testing.T) {
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
		"CorrectHorse42":                  "special",
		strings.Repeat("Aa1-", 17):        "",
		strings.Repeat("Aa1-", 18):        "71 bytes",
		"Aa1-" + strings.Repeat("é", 34):  "71 bytes",
		"x-Ada.Lovelace@Practice.test-X1": "e-mail address",
		"ada.LOVELACE-1815":               "Must not be your name",
		"L0ve-lace-(1815)":                "", // "lvelace"
		"Love-lace-(1815)":                "Must not be your name",
		"Lovelace, Ada 1815":              "Must not be your name",
		"V-I-G-i-l-2026!!":                "Must not be your name",
		"Vigilant-Nurse-1":                "",
		"12-Ada-34-56-78":                 "Must not be your name",
	} {
		problems := auth.PasswordProblems(password, owner)
		switch {
		case broken == "" && len(problems) > 0:
			t.Errorf("%q breaks %v", password, problems)
		case broken != "" && (len(problems) != 1 || !strings.Contains(problems[0], broken)):
			t.Errorf("%q breaks %v, want only %s", password, problems, broken)
		}
	}
	if problems := auth.PasswordProblems("", auth.Owner{}); len(problems) != 5 {
		t.Errorf("no password breaks %v", problems)
	}
}

func TestCommonPasswords(t *testing.T) {
	common := auth.CommonPasswords()
	if len(common) != 10_000 {
		t.Errorf("%d passwords are common", len(common))
	}
	for _, password := range []string{"123456", "PassWord", "qwerty", "Dragon"} {
		found := false
		for _, problem := range auth.PasswordProblems(password, auth.Owner{}) {
			found = found || strings.Contains(problem, "most common")
		}
		if !found {
			t.Errorf("%s is not common", password)
		}
	}
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
			err := e.ChangePassword(t.Context(), app, caller, passwordBody("Wrong-Guess-1", "Next-Password-1"), origin, clock)
			lock.Lock()
			defer lock.Unlock()
			codes[code(err)]++
		})
	}
	guesses.Wait()
	if codes["validation_error"] != 5 || codes["throttled"] != 7 {
		t.Errorf("codes %v", codes)
	}
	wantCode(t, "the right one", e.ChangePassword(t.Context(), app, caller, passwordBody(vigiltest.Password, "Next-Password-1"), origin, clock), "throttled")
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
			results[i] = e.ChangePassword(t.Context(), app, caller, passwordBody(vigiltest.Password, "Next-Password-"+string(rune('1'+i))), origin, clock)
		})
	}
	changes.Wait()
	winners := 0
	for i, err := range results {
		_, signedIn := e.Login(t.Context(), app, credentials(user.Email(), "Next-Password-"+string(rune('1'+i))), origin, clock)
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
				Token: validate.Of(token), NewPassword: validate.Of("Next-Password-1"),
				NewPasswordConfirm: validate.Of("Next-Password-1"),
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
