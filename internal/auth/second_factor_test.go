package auth_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pquerna/otp/totp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// secret is the key of RFC 6238, appendix B: "12345678901234567890".
const secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"

// TestTOTPVectors uses the SHA-1 vectors of RFC 6238, appendix B, reduced to six digits.
func TestTOTPVectors(t *testing.T) {
	for at, code := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130",
	} {
		step, ok := auth.MatchTOTP(secret, code, 0, time.Unix(at, 0))
		if !ok || step != at/30 {
			t.Errorf("%s at %d: step %d, %v", code, at, step, ok)
		}
	}
}

func TestTOTPWindow(t *testing.T) {
	at := time.Unix(1111111109, 0)
	step := at.Unix() / 30
	for shift, want := range map[int]bool{-60: false, -59: true, 0: true, 30: true, 31: false} { // the code's step began 29 seconds before
		if _, ok := auth.MatchTOTP(secret, "081804", 0, at.Add(time.Duration(shift)*time.Second)); ok != want {
			t.Errorf("%d seconds off: %v", shift, ok)
		}
	}
	for last, want := range map[int64]bool{step - 1: true, step: false, step + 1: false} {
		if _, ok := auth.MatchTOTP(secret, "081804", last, at); ok != want {
			t.Errorf("after step %d: %v", last-step, ok)
		}
	}
	for _, damaged := range []string{"", "not base32!", "====", " "} {
		for _, code := range []string{"081804", "328482", "000000"} {
			if _, ok := auth.MatchTOTP(damaged, code, 0, at); ok {
				t.Errorf("secret %q accepts %s", damaged, code)
			}
		}
	}
}

func codeAt(t *testing.T, at time.Time) string {
	t.Helper()
	code, err := totp.GenerateCode(secret, at)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestLoginWithTOTP(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Nurse, vigiltest.TwoFactor(secret))
	right := credentials(user.Email(), vigiltest.Password)
	try := func(body auth.LoginBody, at time.Time) error {
		_, err := e.Login(t.Context(), app, body, origin, at)
		return err
	}
	for range 6 { // a missing code is no failure
		wantCode(t, "no code", try(right, clock), "totp_required")
	}
	wantCode(t, "wrong password, right code", try(withCode(credentials(user.Email(), "wrong"), codeAt(t, clock)), clock), "authentication_failed")
	wantCode(t, "wrong code", try(withCode(right, codeAt(t, clock.Add(-time.Hour))), clock), "authentication_failed")
	wantCode(t, "right code", try(withCode(right, codeAt(t, clock)), clock), "")
	wantCode(t, "the same code again", try(withCode(right, codeAt(t, clock)), clock.Add(time.Second)), "authentication_failed")
	wantCode(t, "an older code", try(withCode(right, codeAt(t, clock.Add(-30*time.Second))), clock.Add(time.Second)), "authentication_failed")
	wantCode(t, "the next code, early", try(withCode(right, codeAt(t, clock.Add(30*time.Second))), clock.Add(time.Second)), "")
	wantCode(t, "spaces around it", try(withCode(right, " "+codeAt(t, clock.Add(time.Minute))+" "), clock.Add(time.Minute)), "")
	for range 5 { // wrong codes lock like wrong passwords
		wantCode(t, "wrong code", try(withCode(right, "000000"), clock.Add(time.Minute)), "authentication_failed")
	}
	wantCode(t, "locked", try(withCode(right, codeAt(t, clock.Add(2*time.Minute))), clock.Add(2*time.Minute)), "account_locked")
}

func TestTOTPCodeWorksOnceUnderConcurrency(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Nurse, vigiltest.TwoFactor(secret))
	body := withCode(credentials(user.Email(), vigiltest.Password), codeAt(t, clock))
	var lock sync.Mutex
	codes := map[string]int{}
	var attempts sync.WaitGroup
	for range 5 {
		attempts.Go(func() {
			_, err := e.Login(t.Context(), app, body, origin, clock)
			lock.Lock()
			defer lock.Unlock()
			codes[code(err)]++
		})
	}
	attempts.Wait()
	if codes[""] != 1 || codes["authentication_failed"] != 4 {
		t.Errorf("codes %v", codes)
	}
}

func TestLoginWithDamagedSecret(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Nurse, vigiltest.TwoFactor(secret))
	_, err := app.NonconcurrentDB().NewQuery(`UPDATE users SET totp_secret = 'v1:test:AAAA:BBBB'`).Execute()
	if err != nil {
		t.Fatal(err)
	}
	empty, err := totp.GenerateCode("", clock) // what an empty secret would accept
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Login(t.Context(), app, withCode(credentials(user.Email(), vigiltest.Password), empty), origin, clock)
	if !collections.IsUnreadable(err) {
		t.Errorf("a code of the empty secret: %v", err)
	}
}

func TestLoginWithBackupCode(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Nurse, vigiltest.TwoFactor(secret))
	other := vigiltest.User(t, app, authz.Nurse, vigiltest.TwoFactor(secret))
	for _, code := range []string{"abcdefghjk", "0123456789", "mnpqrstvwx"} {
		backupCode(t, app, user, code)
	}
	right := credentials(user.Email(), vigiltest.Password)
	inOwnField := right
	inOwnField.BackupCode = validate.Of("01234-56789")
	try := func(body auth.LoginBody) error {
		_, err := e.Login(t.Context(), app, body, origin, clock)
		return err
	}
	wantCode(t, "another's code", try(withCode(credentials(other.Email(), vigiltest.Password), "abcde-fghjk")), "authentication_failed")
	wantCode(t, "in the TOTP field, as it is read aloud", try(withCode(right, "ABCDE fghjk")), "")
	totp := codeFor(t, secret, clock)
	wantCode(t, "as an app shows it", try(withCode(credentials(other.Email(), vigiltest.Password), totp[:3]+" "+totp[3:])), "")
	wantCode(t, "again", try(withCode(right, "abcdefghjk")), "authentication_failed")
	wantCode(t, "in its own field", try(inOwnField), "")
	wantCode(t, "again", try(inOwnField), "authentication_failed")
	wantCode(t, "unknown code", try(withCode(right, "zzzzz-zzzzz")), "authentication_failed")
	wantCode(t, "only a dash", try(withCode(right, "-")), "authentication_failed")
	if got := events(t, app); !slices.Contains(got, "auth.backup_code_used") {
		t.Errorf("audited %v", got)
	}
	record, err := app.FindFirstRecordByData(collections.AuditLog, "event", "auth.backup_code_used")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(record.Get("changes")); got != `{"backup_codes_left":{"old":3,"new":2}}` {
		t.Errorf("audited %s", got)
	}
}

func backupCode(t *testing.T, app core.App, user *collections.User, code string) {
	t.Helper()
	record, err := collections.NewRecord(app, collections.BackupCodes)
	if err != nil {
		t.Fatal(err)
	}
	record.Load(map[string]any{"user": user.Id, "code_hash": vigiltest.Sealer().BackupCodeHash(user.Id, code), "created_at": collections.FormatInstant(clock)})
	if err := app.Save(record); err != nil {
		t.Fatal(err)
	}
}
