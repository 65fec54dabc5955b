package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// sent is a patient create under an idempotency key.
type sent struct {
	key, body string
	answer    string // "" when none arrived
}

// The service is killed repeatedly while patients are created under idempotency keys. Answered requests return the same
// answer again, the others create at most one patient each, and no request waits forever. Source:
// docs/decisions/conventions.md, "Idempotency keys".
func TestIdempotencyThroughKills(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	addr := strings.TrimPrefix(p.URL, "http://")
	admin := p.Admin(t)
	var lock sync.Mutex
	all := map[string]*sent{}
	for round := range 5 {
		var run sync.WaitGroup
		stop := make(chan struct{})
		for worker := range 4 {
			run.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					name := fmt.Sprintf("%d-%d-%d", round, worker, n)
					s := &sent{key: name, body: fmt.Sprintf(`{"first_name":"Ada","last_name":"Lovelace","date_of_birth":"1955-12-10","gender":"female","external_id":"E-%s"}`, name)}
					if n%2 == 1 { // without another unique value that would prevent a duplicate
						s.body = strings.Replace(s.body, `,"external_id":"E-`+name+`"`, fmt.Sprintf(`,"phone":"21255%05d"`, round*10000+worker*1000+n), 1)
					}
					lock.Lock()
					all[name] = s
					lock.Unlock()
					status, body, _ := p.tryPost(admin, s.key, s.body)
					if status == http.StatusCreated {
						s.answer = body
					} else if status != 0 {
						t.Errorf("%s answered %d: %s", name, status, body)
					}
				}
			})
		}
		eventually(t, within, "some were answered", func() bool {
			lock.Lock()
			defer lock.Unlock()
			return len(all) > 60*(round+1)
		})
		p.Kill()
		close(stop)
		run.Wait()
		p.serve(t, addr)
	}

	made, lost, late := map[string]string{}, 0, 0
	for name, s := range all {
		status, body, again := p.tryPost(admin, s.key, s.body)
		switch {
		case s.answer != "" && (status != 201 || body != s.answer || !again):
			t.Errorf("%s was answered\n%s\nand now %d (again: %t)\n%s", name, s.answer, status, again, body)
		case status == 201:
			if !again {
				late++
			}
			made[name] = body
		case status == 422 && strings.Contains(body, "idempotency_answer_lost"):
			lost++
		default:
			t.Errorf("%s is answered %d: %s", name, status, body)
		}
	}
	total := at(t, p.get(t, "/api/v1/patients/", admin).expect(t, 200), "count")
	if total != float64(len(all)) {
		t.Errorf("%v patients of %d requests", total, len(all))
	}
	t.Logf("%d requests through 5 kills: %d were made after a kill, the answer of %d is lost", len(all), late, lost)
}

// tryPost posts a patient to a service that may be down; status is 0 without an answer.
func (p *practice) tryPost(token, key, body string) (status int, answer string, again bool) {
	r, err := http.NewRequest(http.MethodPost, p.URL+"/api/v1/patients/", strings.NewReader(body))
	if err != nil {
		return 0, "", false
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", false
	}
	defer func() { _ = got.Body.Close() }()
	raw, err := io.ReadAll(got.Body)
	if err != nil {
		return 0, "", false
	}
	return got.StatusCode, string(raw), got.Header.Get("Idempotent-Replayed") == "true"
}

// Ten thousand readings of the last month are sent through the API under the default limits, in ten requests.
func TestBackfill(t *testing.T) {
	t.Parallel()
	p := newPractice(t, "VIGIL_RATE_LIMIT_USER=1000/1h", "VIGIL_RATE_LIMIT_AUTH=20/1m", "VIGIL_RATE_LIMIT_ANON=100/1h").serve(t, "")
	admin := p.Admin(t)
	var patients []string
	for i := range 20 {
		patients = append(patients, p.patient(t, object{"mrn": fmt.Sprintf("BACK-%d", i)}))
	}
	machine := p.post(t, "/api/v1/clients/", admin, object{"name": "Device cloud", "scopes": []string{"ingest"}}).expect(t, 201)
	secret := &http.Request{Header: http.Header{}}
	secret.SetBasicAuth(text(t, machine, "id"), text(t, machine, "client_secret"))
	status, token := p.requestToken(t, url.Values{"grant_type": {"client_credentials"}, "scope": {"ingest"}}, "Authorization", secret.Header.Get("Authorization"))
	if status != 200 {
		t.Fatalf("%d %v", status, token)
	}
	bearer, began, stored := token["access_token"].(string), time.Now(), 0.0
	first := began.AddDate(0, 0, -25).UTC().Truncate(time.Second)
	for batch := range 10 {
		var readings []object
		for i := range 1000 {
			n := batch*1000 + i
			reading := bloodPressure(patients[n%len(patients)], float64(110+n%90), float64(70+n%25), first.Add(time.Duration(n/len(patients))*time.Hour))
			reading["type"], reading["device_id"] = "blood_pressure", fmt.Sprintf("BACK-%d", n%len(patients))
			readings = append(readings, reading)
		}
		got := p.send(t, "POST", "/api/v1/ingestion/batch/", bearer, encode(t, object{"readings": readings}), "Idempotency-Key", fmt.Sprintf("backfill %d", batch)).expect(t, 200)
		if left := got.header.Get("X-RateLimit-Remaining"); left != fmt.Sprint(600-batch-1) {
			t.Errorf("after batch %d %s requests are left", batch, left)
		}
		stored += at(t, got, "accepted").(float64)
	}
	if stored != 10_000 {
		t.Errorf("%v are stored", stored)
	}
	t.Logf("10,000 readings in 10 requests took %s", time.Since(began).Round(time.Millisecond))
}
