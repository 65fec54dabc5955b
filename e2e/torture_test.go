package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// TestTorture kills the service at random times under load and compares the stored state with what was acknowledged: every
// reading once, every acknowledgment stored, all totals correct, the audit trail intact, and one Observation for each
// reading at the EMR. TORTURE sets the duration, such as 10m; by default it ends after three kills.
func TestTorture(t *testing.T) {
	t.Parallel()
	length, _ := time.ParseDuration(os.Getenv("TORTURE")) // 0 if unset or invalid
	p, emr, _ := deliveringPractice(t, sandbox.Fault{})
	crowd := newAllClients(t, p)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	crowd.work(ctx)
	began := time.Now()
	kills := 0
	for ; kills < 3 || time.Since(began) < length; kills++ {
		pause(ctx, time.Duration(100+rand.IntN(1400))*time.Millisecond)
		p.Kill()
		p.serve(t, strings.TrimPrefix(p.URL, "http://"))
	}
	pause(ctx, time.Second)
	stop()
	crowd.group.Wait() // each has an answer to its last request
	for _, complaint := range crowd.complaints {
		t.Error(complaint)
	}
	t.Logf("%d kills; acknowledged: %d readings, %d alerts, %d billing runs that made %d entries", kills, len(crowd.readings), len(crowd.alerts), crowd.runs,
		number(t, p.database(t), `SELECT COUNT(*) FROM billing_entries`))
	wantNothingLost(t, p, emr, crowd)
}

func pause(ctx context.Context, length time.Duration) {
	select {
	case <-time.After(length):
	case <-ctx.Done():
	}
}

// torturedPatients is the number of patients that the EMR sandbox has and the test uses.
const torturedPatients = 4

// allClients is all clients of the service: the practice's programs, the gateway, nurses and the billing office. They retry
// requests without an answer.
type allClients struct {
	p        *practice
	url      string // the same across restarts
	patients []string
	group    sync.WaitGroup

	lock       sync.Mutex
	token      string
	tokenAt    time.Time
	readings   map[string]string // observation id by sender and reading
	alerts     map[string]bool   // acknowledged
	runs       int
	complaints []string
}

func newAllClients(t *testing.T, p *practice) *allClients {
	t.Helper()
	c := &allClients{p: p, url: p.URL, readings: map[string]string{}, alerts: map[string]bool{}}
	for i := range torturedPatients {
		id := p.patient(t, object{"gateway_patient_id": fmt.Sprintf("GW-%d", i), "external_id": fmt.Sprintf("pat-%d", 1002+i), "icd10_codes": []string{"I10"}})
		p.giveDevice(t, fmt.Sprintf("TORTURE-%d", i), id)
		p.post(t, "/api/v1/patients/"+id+"/consents/", p.Admin(t), object{
			"type": "rpm", "method": "written", "granted_at": time.Now().AddDate(0, -6, 0).UTC().Format(time.RFC3339), "document_reference": "scan 1",
		}).expect(t, 201)
		c.patients = append(c.patients, id)
	}
	return c
}

// work starts all clients. They stop once ctx is done and their last request was answered.
func (c *allClients) work(ctx context.Context) {
	for i, patient := range c.patients {
		c.group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				c.post(fmt.Sprintf("program %d/%d", i, n), "id", bloodPressure(patient, float64(110+n%60), 80, tortureTime(2*n)))
				pause(ctx, 5*time.Millisecond)
			}
		})
		c.group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				c.post(fmt.Sprintf("gateway %d/%d", i, n), "observation_id",
					measurement(fmt.Sprintf("GW-%d", i), fmt.Sprintf("TORTURE-%d-%d", i, n), float64(110+n%60), 80, tortureTime(2*n+1)))
				pause(ctx, 5*time.Millisecond)
			}
		})
	}
	c.group.Go(func() {
		for ctx.Err() == nil {
			c.acknowledge(ctx)
			pause(ctx, 50*time.Millisecond)
		}
	})
	c.group.Go(func() {
		for ctx.Err() == nil {
			if status, _ := c.try("POST", "/api/v1/billing/run/", "{}"); status == 200 {
				c.lock.Lock()
				c.runs++
				c.lock.Unlock()
			} else if status >= 500 && status != 503 {
				c.complain("the billing run answered %d", status)
			}
			pause(ctx, 300*time.Millisecond)
		}
	})
}

// tortureTime spreads readings over the last six weeks, no two of a patient in the same second. Times go back, so each reading of a gateway has a
// device of its own: a device that goes back is in doubt.
func tortureTime(n int) time.Time {
	const span = 42 * 24 * 3600
	return tortureBegan.Add(time.Duration(int64(n)*1_000_003%span) * time.Second)
}

var tortureBegan = time.Now().AddDate(0, 0, -43).Truncate(time.Second)

// post sends one reading until it is acknowledged, and stores the id. A repeated answer must be identical.
func (c *allClients) post(key, idField string, body object) {
	path := "/api/v1/ingestion/blood-pressure/"
	if idField == "observation_id" {
		path = webhook
	}
	raw, err := json.Marshal(body)
	if err != nil {
		c.complain("%s: %v", key, err)
		return
	}
	for range 3000 {
		status, answer := c.try(http.MethodPost, path, string(raw))
		switch {
		case status == 200 || status == 201:
			id, _ := answer[idField].(string)
			c.lock.Lock()
			c.readings[key] = id
			c.lock.Unlock()
			return
		case status != 0 && status != 503:
			c.complain("%s was answered %d: %v", key, status, answer)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	c.complain("%s was never acknowledged", key)
}

// acknowledge acknowledges the newest unacknowledged alerts.
func (c *allClients) acknowledge(ctx context.Context) {
	status, list := c.try(http.MethodGet, "/api/v1/alerts/?acknowledged=false&page_size=10", "")
	if status != 200 {
		return
	}
	results, _ := list["results"].([]any)
	for _, item := range results {
		alert, _ := item.(map[string]any)
		id := fmt.Sprint(alert["id"])
		if status, answer := c.try(http.MethodPost, "/api/v1/alerts/"+id+"/acknowledge/", "{}"); status == 200 {
			c.lock.Lock()
			c.alerts[id] = true
			c.lock.Unlock()
		} else if status >= 500 && status != 503 {
			c.complain("acknowledging alert %s answered %d: %v", id, status, answer)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func (c *allClients) complain(format string, a ...any) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if len(c.complaints) < 20 {
		c.complaints = append(c.complaints, fmt.Sprintf(format, a...))
	}
}

// tortureClient has a timeout, because a killed service does not answer.
var tortureClient = &http.Client{Timeout: 30 * time.Second}

// try sends a request as the administrator or the gateway; the status is 0 without an answer.
func (c *allClients) try(method, path, body string) (status int, answer map[string]any) {
	if path == webhook {
		return c.tryAs("", method, path, body)
	}
	return c.tryAs(c.bearer(), method, path, body)
}

func (c *allClients) tryAs(token, method, path, body string) (status int, answer map[string]any) {
	request, err := http.NewRequest(method, c.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	request.Header.Set("Content-Type", "application/json")
	if path == webhook {
		headers := signature(c.p.WebhookSecret, body, time.Now())
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
	} else {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := tortureClient.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil
	}
	_ = json.Unmarshal(raw, &answer) // not JSON: no fields
	return response.StatusCode, answer
}

// bearer returns an access token, renewed every ten minutes. If it cannot be renewed, the request fails.
func (c *allClients) bearer() string {
	c.lock.Lock()
	defer c.lock.Unlock()
	if time.Since(c.tokenAt) < 10*time.Minute {
		return c.token
	}
	body := fmt.Sprintf(`{"email":%q,"password":%q}`, adminEmail, password)
	response, err := tortureClient.Post(c.url+"/api/v1/auth/login/", "application/json", strings.NewReader(body))
	if err != nil {
		return c.token
	}
	defer response.Body.Close()
	var tokens struct{ Access string }
	if json.NewDecoder(response.Body).Decode(&tokens) == nil && tokens.Access != "" {
		c.token, c.tokenAt = tokens.Access, time.Now()
	}
	return c.token
}
