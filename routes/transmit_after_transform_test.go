package routes_test

import (
	"sync"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/emr"
)

// A user who transforms a reading and then requests its transmission gets the delivery that the worker has already made.
func TestTransmitRightAfterTransform(t *testing.T) {
	d := newDelivering(t)
	id := d.observe()
	path := "/fhir/observations/" + id
	d.request(authz.Nurse, "POST", path+"/transform/", nil).want(200)
	number := (<-d.finished).TransmissionID
	for _, after := range []time.Duration{0, 59 * time.Second, time.Second} {
		d.advance(after)
		d.request(authz.Provider, "POST", path+"/transmit/", nil).want(200).wantAt(object{"observation_id": id, "fhir_status": "transmitted", "transmission_id": number})
	}
	d.request(authz.Nurse, "POST", path+"/transform/", nil).want(400, "invalid_state")
	d.advance(time.Millisecond)
	d.request(authz.Provider, "POST", path+"/transmit/", nil).want(400, "invalid_state")
	if len(d.finished) != 0 {
		t.Error("it was sent again")
	}

	// A delivery that failed in the meantime is sent again.
	d.emr.refuse(&emr.Error{Code: emr.CodeUnavailable, Status: 503, Message: "EMR unavailable (503)"})
	id = d.observe()
	path = "/fhir/observations/" + id
	d.request(authz.Nurse, "POST", path+"/transform/", nil).want(200)
	<-d.finished
	d.emr.refuse(nil)
	d.request(authz.Nurse, "POST", path+"/transmit/", nil).want(200).wantAt(object{"fhir_status": "processing"})
	<-d.finished
	d.request(authz.Nurse, "POST", path+"/transmit/", nil).want(200).wantAt(object{"fhir_status": "transmitted"})
}

// Only a user's transform counts, not the service's transform when it stores a reading or repairs one.
func TestTransmitAfterServiceTransform(t *testing.T) {
	d := newDelivering(t)
	owed := d.observe()
	if _, err := d.app.DB().NewQuery(`UPDATE observations SET transform_error = 'The reading has no FHIR form.' WHERE id = '` + owed + `'`).Execute(); err != nil {
		t.Fatal(err)
	}
	d.request(authz.Admin, "POST", "/fhir/process-pending/", nil).want(200).wantAt(object{"details.transformed": 1.0})
	<-d.finished
	d.request(authz.Admin, "POST", "/fhir/observations/"+owed+"/transmit/", nil).want(400, "invalid_state")
}

// A delivery already in progress after its transform is reported as processing: it is not sent twice, and the request is
// not refused.
func TestTransmitWhileItIsSent(t *testing.T) {
	d := newDelivering(t)
	d.emr.lock.Lock() // the EMR does not answer
	answer := sync.OnceFunc(d.emr.lock.Unlock)
	t.Cleanup(answer)
	id := d.observe()
	d.request(authz.Nurse, "POST", "/fhir/observations/"+id+"/transform/", nil).want(200)
	d.request(authz.Nurse, "POST", "/fhir/observations/"+id+"/transmit/", nil).want(200).wantAt(object{"fhir_status": "processing"})
	d.request(authz.Nurse, "POST", "/fhir/observations/"+id+"/transmit/", nil).want(200).wantAt(object{"fhir_status": "processing"})
	answer()
	<-d.finished
	d.request(authz.Nurse, "POST", "/fhir/observations/"+id+"/transmit/", nil).want(200).wantAt(object{"fhir_status": "transmitted"})
	d.stopWorker()
	if len(d.finished) != 0 {
		t.Error("it was sent twice")
	}
}
