package routes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A weight that was counted, announced and delivered before the three older ones arrive that it is far from: it is a question, its gain is withdrawn, its
// copy at the EMR preliminary, and one that was not sent yet is not. The escalation stays for a person. Confirmed, it counts again.
func TestStoryWeightFarFromOlderOnes(t *testing.T) {
	a := newAtTheEMR(t)
	weigh := func(kg float64, ago time.Duration) string {
		return a.request(authz.Nurse, "POST", "/ingestion/weight/", object{
			"patient_id": a.patient, "weight_kg": kg, "measured_at": a.now.Add(-ago).Format(time.RFC3339),
		}).want(201).text("id")
	}
	state := func(id string) string {
		o := a.request(authz.Nurse, "GET", "/ingestion/observations/"+id+"/", nil).want(200)
		return fmt.Sprint(o.at("review_state"), " ", o.at("suspect_reason"), " ", o.at("fhir_status"))
	}
	a.now = a.now.AddDate(0, 1, 0)
	start := a.now
	weigh(70, 6*24*time.Hour)
	delivered := weigh(95, 3*time.Hour)
	a.deliver(time.Minute)
	a.copies(2)
	unsent := weigh(110, 2*time.Hour)
	for i, kg := range []float64{70.4, 69.8, 70.2} {
		weigh(kg, time.Duration(3+i)*24*time.Hour+a.now.Sub(start))
	}
	if got, want := state(delivered), "suspect far_from_usual pending"; got != want {
		t.Errorf("the delivered one is %s, want %s", got, want)
	}
	if got, want := state(unsent), "suspect far_from_usual <nil>"; got != want {
		t.Errorf("the one that was not sent is %s, want %s", got, want)
	}
	if got, want := a.queryRows(t, `SELECT type || ' ' || level || ' ' || value FROM alerts WHERE status = 'active'`), "[suspect_reading warning 95.0]"; fmt.Sprint(got) != want {
		t.Errorf("open are %q, want %s", got, want)
	}
	if stats := a.statEscalations(t); fmt.Sprint(stats) != "[stat open system]" {
		t.Errorf("escalations: %q", stats)
	}
	a.deliver(10 * time.Minute)
	copyOf := func(id string, among int) string {
		for _, o := range a.copies(among) {
			if strings.HasSuffix(o.Identifier, id) {
				return o.Status
			}
		}
		return "missing"
	}
	if first, second := copyOf(delivered, 5), copyOf(unsent, 5); first != "preliminary" || second != "missing" {
		t.Errorf("the EMR has %s, %s", first, second)
	}
	for _, id := range []string{delivered, unsent} {
		a.request(authz.Nurse, "POST", "/ingestion/observations/"+id+"/confirm/", object{"notes": "edema"}).want(200)
	}
	a.deliver(10 * time.Minute)
	if first, second := copyOf(delivered, 6), copyOf(unsent, 6); first != "amended" || second != "final" {
		t.Errorf("confirmed: %s, %s", first, second)
	}
	if got := a.queryRows(t, `SELECT type || ' ' || level || ' ' || value FROM alerts WHERE status = 'active' ORDER BY id`); fmt.Sprint(got) != "[weight critical 25.2 weight critical 40.2]" {
		t.Errorf("open are %q", got)
	}
}
