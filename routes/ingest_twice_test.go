package routes_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// practiceSize names the variable that enlarges the practice of TestIngestTwice, as "patients x days".
const practiceSize = "VIGIL_TEST_PRACTICE"

// A simulated practice, with every fault of devices and the gateway, is ingested twice and gives exactly the same
// database as once. Every event is accounted for, and each 200 has a stored row.
func TestIngestTwice(t *testing.T) {
	patients, days := 12, 4
	if size := os.Getenv(practiceSize); size != "" {
		if _, err := fmt.Sscanf(size, "%dx%d", &patients, &days); err != nil {
			t.Fatalf("%s: %v", practiceSize, err)
		}
	}
	c := newIngestingClinic(t)
	for n := 1; n <= patients; n++ {
		c.enroll(object{"gateway_patient_id": sandbox.GatewayPatientID(n)})
	}
	events := simulatedDays(patients, days, c.now)
	started := time.Now()
	first := c.ingestAll(t, events)
	once, took := vigiltest.RowCounts(t, c.app), time.Since(started)
	sums := c.rowSums(t)
	second := c.ingestAll(t, events)
	added := vigiltest.RowsAdded(t, c.app, once)
	// Requests with an invalid signature or timestamp are recorded once an hour, with the first.
	if diff := cmp.Diff(map[string]int{}, added); diff != "" || first["401"]+second["401"] == 0 {
		t.Errorf("ingesting again adds %s", diff)
	}
	if diff := cmp.Diff(sums, c.rowSums(t)); diff != "" {
		t.Errorf("ingesting again changes sums: %s", diff)
	}
	if second["accepted"] != 0 {
		t.Errorf("accepted again: %d", second["accepted"])
	}
	kept := c.rowSums(t)
	for what, want := range map[string]int{"observations": first["observation"], "open": first["quarantined"], "rejected": first["400"], "handled": first["accepted"] - first["observation"]} {
		if kept[what] != want {
			t.Errorf("%d %s stored, %d answered", kept[what], what, want)
		}
	}
	t.Logf("%d patients, %d days, %d events in %v (%.0f/s)", patients, days, len(events), took.Round(time.Millisecond), float64(len(events))/took.Seconds())
	t.Logf("first %v", first)
	t.Logf("second %v", second)
	for _, table := range slices.Sorted(maps.Keys(once)) {
		if once[table] > 0 {
			t.Logf("%-24s %d", table, once[table])
		}
	}
}

// simulatedDays returns a practice's events up to now, in the order sent; days that the patient missed have none.
func simulatedDays(patients, days int, now time.Time) (events []sandbox.Event) {
	rates := maps.Clone(sandbox.DefaultFaultRates)
	if patients < 100 { // minPaidDays events still show every fault
		for flaw := range rates {
			rates[flaw] = 0.05
		}
	}
	households := sandbox.SimulatedHouseholds(patients)
	simulator := sandbox.NewSimulator(households, sandbox.Seed, rates)
	perDay := 0
	for _, household := range households {
		perDay += len(household.Devices)
	}
	for day := days; day > 0; day-- {
		morning := now.AddDate(0, 0, -day)
		for i := range perDay * 4 / 5 {
			events = append(events, simulator.Next(morning.Add(time.Duration(i)*12*time.Hour/time.Duration(perDay)).In(newYork))...)
		}
	}
	return events
}

// ingestAll posts the events from eight senders as the gateway does, retries included, and counts the answers.
// Measurements of one device stay in order.
func (c *clinic) ingestAll(t *testing.T, events []sandbox.Event) map[string]int {
	t.Helper()
	const senders = 8
	queues := map[int][]sandbox.Event{}
	for _, event := range events {
		sender := 0
		for _, letter := range event.DeviceID + event.HubID {
			sender = (sender*31 + int(letter)) % senders
		}
		queues[sender] = append(queues[sender], event)
	}
	var lock sync.Mutex
	tally := map[string]int{}
	var work sync.WaitGroup
	for _, queue := range queues {
		work.Go(func() {
			for _, event := range queue {
				for _, answer := range c.attempt(t, event) {
					lock.Lock()
					tally[answer]++
					lock.Unlock()
				}
			}
		})
	}
	work.Wait()
	return tally
}

// attempt posts one event. A stale one is refused first; a request is repeated if its answer was lost.
func (c *clinic) attempt(t *testing.T, event sandbox.Event) (answers []string) {
	body, err := event.Body()
	if err != nil {
		t.Error(err)
		return nil
	}
	attempts := []time.Duration{0}
	switch {
	case event.HeaderAge > 0:
		attempts = []time.Duration{event.HeaderAge, 0}
	case event.Fault == sandbox.FaultLostAnswer:
		attempts = []time.Duration{0, 0}
	}
	for _, age := range attempts {
		rec := c.webhook(body, c.now.Add(-age))
		if rec.Code != http.StatusOK {
			answers = append(answers, fmt.Sprint(rec.Code))
			continue
		}
		var status struct {
			Status        string `json:"status"`
			ObservationID string `json:"observation_id"`
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &status); err != nil {
			t.Error(err)
		}
		answers = append(answers, status.Status)
		if status.Status == "accepted" && status.ObservationID != "" {
			answers = append(answers, "observation")
		}
	}
	return answers
}

// rowSums returns figures that row counts do not show.
func (c *clinic) rowSums(t *testing.T) map[string]int {
	t.Helper()
	sums := map[string]int{}
	for name, query := range map[string]string{
		"observations":    `SELECT COUNT(*) FROM observations`,
		"readings by day": `SELECT COALESCE(SUM(readings), 0) FROM reading_days`,
		"daily counts":    `SELECT COALESCE(SUM(readings), 0) FROM daily_counts`,
		"open":            `SELECT COUNT(*) FROM gateway_events WHERE status = 'open'`,
		"rejected":        `SELECT COUNT(*) FROM gateway_events WHERE status = 'rejected'`,
		"handled":         `SELECT COUNT(*) FROM gateway_events WHERE status = 'handled'`,
	} {
		var n int
		if err := c.app.DB().NewQuery(query).Row(&n); err != nil {
			t.Fatal(err)
		}
		sums[name] = n
	}
	return sums
}
