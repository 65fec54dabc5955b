package routes_test

import (
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/emr"
)

// During an EMR outage the status reports it and untried deliveries keep their state; a request to send them all tries
// one. Source: docs/decisions/transmissions.md, "An outage".
func TestStatusDuringAnOutage(t *testing.T) {
	d := newDelivering(t)
	d.emr.refuse(&emr.Error{Code: emr.CodeUnavailable, Message: "EMR unavailable (no connection)", Ambiguous: true})
	first := d.send()
	if s := <-d.finished; s.ObservationID != first || s.RetryAt != clock.Add(5*time.Minute) {
		t.Fatalf("%+v", s)
	}
	var later []string
	for range 3 {
		later = append(later, d.send())
	}
	d.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{
		"status": "down", "emr_connection": "disconnected", "queue.pending": 3.0, "queue.processing": 0.0, "queue.failed_awaiting_retry": 1.0,
		"today_stats.transmitted": 0.0, "today_stats.failed": 1.0,
	})
	for range 2 {
		d.request(authz.Admin, "POST", "/fhir/process-pending/", nil).want(200).wantAt(object{
			"processed": 1.0, "succeeded": 0.0, "failed": 1.0, "details.transmitted": 0.0,
		})
		<-d.finished
	}
	d.request(authz.Admin, "POST", "/fhir/process-pending/", nil).want(200).wantAt(object{"processed": 1.0, "failed": 1.0, "skipped": 0.0})
	<-d.finished
	d.request(authz.Admin, "POST", "/fhir/process-pending/", nil).want(200).wantAt(object{"processed": 0.0, "failed": 0.0, "skipped": 0.0}) // nothing is due
	d.request(authz.MA, "GET", "/fhir/transmissions/?status=failed", nil).want(200).wantAt(object{"count": 4.0})

	// A manual request reports the delivery as processing; it fails without using up another attempt.
	d.request(authz.Nurse, "POST", "/fhir/observations/"+first+"/transmit/", nil).want(200).wantAt(object{"fhir_status": "processing"})
	if s := <-d.finished; s.ObservationID != first || !s.Failed() {
		t.Fatalf("%+v", s)
	}
	d.request(authz.MA, "GET", "/fhir/transmissions/?status=failed", nil).want(200).wantAt(object{"count": 4.0})
	var most int
	if err := d.app.DB().NewQuery("SELECT MAX(attempt_count) FROM transmissions").Row(&most); err != nil || most != 1 {
		t.Errorf("up to %d attempts (%v)", most, err)
	}

	// A manual delivery that succeeds closes the circuit breaker, and the others follow at once though none is due.
	d.emr.refuse(nil)
	d.advance(time.Second)
	d.request(authz.Nurse, "POST", "/fhir/observations/"+later[0]+"/transmit/", nil).want(200)
	for range 4 {
		if s := <-d.finished; s.Failed() {
			t.Errorf("%+v", s)
		}
	}
	d.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{
		"emr_connection": "connected", "queue.pending": 0.0, "queue.failed_awaiting_retry": 0.0, "today_stats.transmitted": 4.0, "today_stats.failed": 0.0,
	})
}

// send stores a reading that is due.
func (d *delivering) send() (id string) {
	d.t.Helper()
	id = d.observe()
	if _, err := d.app.DB().Update(collections.Observations, dbx.Params{"created_at": collections.FormatInstant(d.now)}, dbx.HashExp{"id": id}).Execute(); err != nil {
		d.t.Fatal(err)
	}
	d.request(authz.Nurse, "POST", "/fhir/observations/"+id+"/transform/", nil).want(200)
	return id
}
