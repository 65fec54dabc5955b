package e2e

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// On a shared phone the first user signs out as the contract describes, with the refresh token alone, and the phone receives
// no more pushes. The user's other device does.
func TestSharedPhone(t *testing.T) {
	t.Parallel()
	push := newPushCatcher(t, time.Now)
	p := newPractice(t, push.settings...).serve(t, "")
	p.user(t, "clinical_manager", nil)
	signIn := func() (access, refresh string) {
		signed := p.post(t, "/api/v1/auth/login/", "", object{"email": "clinical_manager@vigil.test", "password": password}).expect(t, 200)
		return text(t, signed, "access"), text(t, signed, "refresh")
	}
	shared, refresh := signIn()
	own, _ := signIn()
	push.subscribe(t, p, shared, "/shared")
	push.subscribe(t, p, own, "/own")
	p.post(t, "/api/v1/auth/logout/", shared, object{"refresh": refresh}).expect(t, 204)
	patient := p.patient(t, nil)
	p.post(t, "/api/v1/ingestion/blood-pressure/", p.Admin(t), bloodPressure(patient, 190, 125, time.Now())).expect(t, 201)
	push.want(t, "Stat escalation: ")
	var paths []string
	for _, got := range push.all() {
		paths = append(paths, got.path)
	}
	if slices.ContainsFunc(paths, func(path string) bool { return !strings.HasSuffix(path, "/own") }) {
		t.Errorf("pushed to %v", paths)
	}
}

// Ten concurrent requests with one refresh token: one is served, one more may get the same answer, and a third ends the
// session.
func TestConcurrentRefresh(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	p.user(t, "nurse", nil)
	signed := p.post(t, "/api/v1/auth/login/", "", object{"email": "nurse@vigil.test", "password": password}).expect(t, 200)
	var lock sync.Mutex
	var served []string
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			a := p.post(t, "/api/v1/auth/token/refresh/", "", object{"refresh": text(t, signed, "refresh")})
			lock.Lock()
			defer lock.Unlock()
			switch a.status {
			case 200:
				served = append(served, text(t, a, "refresh"))
			case 401:
			default:
				t.Errorf("answered %d", a.status)
			}
		})
	}
	all.Wait()
	if len(served) != 2 {
		t.Errorf("%d were served", len(served))
	}
	for _, token := range served {
		p.post(t, "/api/v1/auth/token/refresh/", "", object{"refresh": token}).expect(t, 401)
	}
}
