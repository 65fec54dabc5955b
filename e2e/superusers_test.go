package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
)

// superuserCommand runs `vigil superuser …` while the service runs and returns its output and exit status.
func (p *practice) superuserCommand(t testing.TB, args ...string) (said string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary(t), append(append([]string{"superuser"}, args...), "--dir", p.Dir)...)
	cmd.Env = environ(p.Env)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (p *practice) dashboard(t testing.TB, password string, more object) answer {
	t.Helper()
	body := object{"identity": superuserEmail, "password": password}
	for name, value := range more {
		body[name] = value
	}
	return p.post(t, "/api/collections/_superusers/auth-with-password", "", body)
}

var authenticatorSecret = regexp.MustCompile(`(?m)^[A-Z2-7]{32}$`)

// In production the dashboard requires a second factor; the operator sets it up on the machine while the service runs.
func TestDashboardInProduction(t *testing.T) {
	t.Parallel()
	p := newPractice(t, "VIGIL_ENVIRONMENT=production", "VIGIL_PUBLIC_URL=https://vigil.example.org").serve(t, "")
	if a := p.dashboard(t, password, nil).expect(t, 403); !strings.Contains(string(a.body), "reset-2fa") {
		t.Errorf("without a second factor the answer is %s", a.body)
	}
	said, status := p.superuserCommand(t, "reset-2fa", superuserEmail)
	secret := authenticatorSecret.FindString(said)
	if status != 0 || secret == "" || !strings.Contains(said, "otpauth://totp/") {
		t.Fatalf("exit %d: %s", status, said)
	}
	half := text(t, p.dashboard(t, password, nil).expect(t, 401), "mfaId")
	code, err := totp.GenerateCode(secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	whole := p.post(t, "/api/collections/_superusers/auth-with-otp", "", object{"otpId": "x", "password": code, "mfaId": half}).expect(t, 200)
	token := text(t, whole, "token")
	p.send(t, http.MethodGet, "/api/collections/patients/records", token, "").expect(t, 200)
	p.dashboard(t, password, object{"totp_code": code}).expect(t, 400) // a code is valid once

	if said, status := p.superuserCommand(t, "reset-2fa", superuserEmail, "--remove"); status != 0 || strings.Contains(said, "otpauth") {
		t.Errorf("exit %d: %s", status, said)
	}
	p.send(t, http.MethodGet, "/api/collections/patients/records", token, "").expect(t, 403) // its session has ended
	p.dashboard(t, password, nil).expect(t, 403)
}

// Anonymous callers can keep an address locked; an operator on the machine unlocks it.
func TestUnlockSuperuser(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	for range 5 {
		p.dashboard(t, "Wrong-Horse-4321", nil).expect(t, 400)
	}
	if a := p.dashboard(t, password, nil).expect(t, 423); a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After with a locked address")
	}
	if said, status := p.superuserCommand(t, "unlock", strings.ToUpper(superuserEmail)); status != 0 {
		t.Fatalf("exit %d: %s", status, said)
	}
	p.dashboard(t, password, nil).expect(t, 200)
	if said, status := p.superuserCommand(t, "unlock", "mistyped@vigil.test"); status != 1 || !strings.Contains(said, "there is no superuser") {
		t.Errorf("a mistyped address: %d, %s", status, said)
	}
	wantCount(t, p.database(t), 1, `SELECT COUNT(*) FROM audit_log WHERE event = 'auth.unlock' AND actor_type = 'system' AND resource_type = 'Superuser'`, nil)
}

func TestSuperuserCommands(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	for _, weak := range []string{"12345678", "1234567890", "correct-horse-42", superuserEmail + "A1"} {
		if said, status := p.superuserCommand(t, "upsert", superuserEmail, weak); status != 1 || !strings.Contains(said, "password") {
			t.Errorf("%q: exit %d: %s", weak, status, said)
		}
	}
	for _, args := range [][]string{{"unlock"}, {"reset-2fa"}, {"reset-2fa", "a@b.test", "c@d.test"}} {
		if said, status := p.superuserCommand(t, args...); status != 2 {
			t.Errorf("%v: exit %d: %s", args, status, said)
		}
	}
	if said, status := p.superuserCommand(t, "reset-2fa", "nobody@vigil.test"); status != 1 || !strings.Contains(said, "nobody@vigil.test") {
		t.Errorf("exit %d: %s", status, said)
	}
	if said, status := p.superuserCommand(t, "otp", superuserEmail); status == 0 && strings.Contains(said, "OTP") {
		t.Errorf("a code is mailed: %s", said)
	}
	if said, status := p.superuserCommand(t, "create", "second@vigil.test", "Second-Horse-77"); status != 0 {
		t.Errorf("exit %d: %s", status, said)
	}
	if said, status := p.superuserCommand(t, "delete", "second@vigil.test"); status != 0 {
		t.Errorf("exit %d: %s", status, said)
	}
	wantCount(t, p.database(t), 2, `SELECT COUNT(*) FROM audit_log WHERE event IN ('superuser.create', 'superuser.delete') AND actor_type = 'system'
		AND id > (SELECT MIN(id) FROM audit_log WHERE event = 'superuser.create')`, nil)
}

// Sixty concurrent guesses from sixty addresses, the correct one sent last: five are counted, the account is locked, and no
// token is issued.
func TestConcurrentPasswordGuesses(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	var guesses sync.WaitGroup
	var lock sync.Mutex
	answers := map[int]int{}
	for i := range 60 {
		guess := fmt.Sprintf("Wrong-Horse-%d", 1000+i)
		guesses.Go(func() {
			body := encode(t, object{"identity": superuserEmail, "password": guess})
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/api/collections/_superusers/auth-with-password", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			request.Header.Set("Content-Type", "application/json")
			response, err := from(fmt.Sprintf("127.0.2.%d", i+1)).Do(request)
			if err != nil {
				t.Error(err)
				return
			}
			_ = response.Body.Close()
			lock.Lock()
			defer lock.Unlock()
			answers[response.StatusCode]++
		})
	}
	guesses.Wait()
	// A locked account had five attempts. 503: the sign-in queue is full.
	if answers[200] > 0 || answers[400] > 5 || answers[423] > 0 && answers[400] != 5 || answers[400]+answers[423]+answers[503] != 60 {
		t.Errorf("the answers were %v", answers)
	}
	for range 5 - answers[400] {
		p.dashboard(t, "Wrong-Horse-4321", nil)
	}
	p.dashboard(t, password, nil).expect(t, 423)
}
