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

// TestTorture kills the service at random moments while everybody uses it, and holds what is stored against what was acknowledged:
// every reading once, every acknowledgement kept, all sums equal to what they are sums of, the audit trail whole, and one Observation
// for each reading at the EMR. TORTURE says how long it goes on, such as 10m; otherwise it is over after three kills.
func TestTorture(t *testing.T) {
	t.Parallel()
	length, _ := time.ParseDuration(os.Getenv("TORTURE")) // nothing, or nonsense: short
	p, emr, _ := deliveringPractice(t, sandbox.Fault{})
	crowd := newEverybody(t, p)
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
	crowd.group.Wait() // each has an answer for what it sent last
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

// torturedPatients are all that the EMR sandbox knows and the test uses.
const torturedPatients = 4

// everybody is all who use the service: programs of the practice, the gateway, nurses and the billing office. They send again
// what was not answered, as they would.
type everybody struct {
	p        *practice
	url      string // stays the same over every restart
	patients []string
	group    sync.WaitGroup

	lock       sync.Mutex
	token      string
	tokenAt    time.Time
	readings   map[string]string // id of the observation by who sent what
	alerts     map[string]bool   // acknowledged
	runs       int
	complaints []string
}

func newEverybody(t *testing.T, p *practice) *everybody {
	t.Helper()
	c := &everybody{p: p, url: p.URL, readings: map[string]string{}, alerts: map[string]bool{}}
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

// work starts everybody; they stop once ctx is done and their last request was answered.
func (c *everybody) work(ctx context.Context) {
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
					measurement(fmt.Sprintf("GW-%d", i), fmt.Sprintf("TORTURE-%d", i), float64(110+n%60), 80, tortureTime(2*n+1)))
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

// tortureTime spreads readings over the last six weeks: no two of a patient in the same second.
func tortureTime(n int) time.Time {
	const span = 42 * 24 * 3600
	return tortureBegan.Add(time.Duration(int64(n)*1_000_003%span) * time.Second)
}

var tortureBegan = time.Now().AddDate(0, 0, -43).Truncate(time.Second)

// post sends one reading until it is acknowledged, and keeps the id. It comes back in the same words, or the service has lost its mind.
func (c *everybody) post(key, idField string, body object) {
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

// acknowledge deals with the newest alerts that nobody has dealt with.
func (c *everybody) acknowledge(ctx context.Context) {
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

func (c *everybody) complain(format string, a ...any) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if len(c.complaints) < 20 {
		c.complaints = append(c.complaints, fmt.Sprintf(format, a...))
	}
}

// patience is one request's: a service that was killed does not answer at all.
var tortureClient = &http.Client{Timeout: 30 * time.Second}

// try makes a request as the administrator, or the gateway; the status is 0 when nobody answered.
func (c *everybody) try(method, path, body string) (status int, answer map[string]any) {
	if path == webhook {
		return c.tryAs("", method, path, body)
	}
	return c.tryAs(c.bearer(), method, path, body)
}

func (c *everybody) tryAs(token, method, path, body string) (status int, answer map[string]any) {
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
	_ = json.Unmarshal(raw, &answer) // no JSON, no fields
	return response.StatusCode, answer
}

// bearer is an access token, fetched anew every ten minutes; that it cannot be had now is found out by the request.
func (c *everybody) bearer() string {
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
