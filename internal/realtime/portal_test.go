package realtime_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/tools/subscriptions"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/realtime"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A portal account is notified of news about its own patients only, without content; a caregiver until the access ends, on an open stream too.
func TestPortalTopic(t *testing.T) {
	r := newFixture(t)
	ada, bob := vigiltest.Patient(t, r.app, dbx.Params{"mrn": "A1"}), vigiltest.Patient(t, r.app, dbx.Params{"mrn": "B1"})
	own := r.mustSubscribe(vigiltest.User(t, r.app, authz.Patient, vigiltest.PortalOf(ada)))
	daughter := vigiltest.User(t, r.app, authz.Patient)
	if _, err := r.subscribe(daughter); err == nil {
		t.Error("an account without a patient may subscribe")
	}
	access, err := collections.AddCaregiver(r.app, collections.CaregiverDraft{UserID: daughter.Id, PatientID: bob, Relationship: "child", Scope: "read"}, r.now)
	if err != nil {
		t.Fatal(err)
	}
	r.auth.Evict(daughter.Id)
	caregiver := r.mustSubscribe(daughter)
	r.note(audit.ObservationCreate, audit.ResourceObservation, "o1", ada)
	r.note(audit.MessageCreate, audit.ResourceMessage, "m1", bob)
	r.note(audit.PatientRead, audit.ResourcePatient, ada, ada)
	r.round(time.Second)
	news := func(stream *realtime.Stream) (patients []any, open bool) {
		messages, open := received(t, stream)
		for _, m := range messages {
			patients = append(patients, m.Data.(map[string]any)["patient_id"])
		}
		return patients, open
	}
	if got, _ := news(own); !cmp.Equal(got, []any{ada}) {
		t.Errorf("the patient got %v", got)
	}
	if got, _ := news(caregiver); !cmp.Equal(got, []any{bob}) {
		t.Errorf("the caregiver got %v", got)
	}
	if err := access.End(r.app, "nurse@vigil.test", r.now); err != nil {
		t.Fatal(err)
	}
	r.auth.Evict(daughter.Id) // as the hook does
	r.note(audit.ObservationCreate, audit.ResourceObservation, "o2", bob)
	r.round(time.Second)
	if got, open := news(caregiver); len(got) != 0 || open {
		t.Errorf("after the access ended the caregiver got %v, open %v", got, open)
	}
	nurse := vigiltest.User(t, r.app, authz.Nurse)
	stream := realtime.NewStream(subscriptions.NewDefaultClient(), func() {})
	if _, err := r.publisher.Subscribe(r.app, stream, realtime.PortalTopic, vigiltest.Token(t, nurse, r.now), r.now); err == nil {
		t.Error("a nurse may subscribe to the portal's topic")
	}
}

// A caregiver of two patients whose access to one ends, by a person or by its last day, gets no more news of that one within a minute on the
// stream that is open or after it reconnects, and still those of the other.
func TestPortalTopicOfTwoPatients(t *testing.T) {
	r := newFixture(t)
	ada, bob, cleo := vigiltest.Patient(t, r.app, dbx.Params{"mrn": "A1"}), vigiltest.Patient(t, r.app, dbx.Params{"mrn": "B1"}), vigiltest.Patient(t, r.app, dbx.Params{"mrn": "C1"})
	daughter := vigiltest.User(t, r.app, authz.Patient)
	access := map[string]*collections.Caregiver{}
	for _, patient := range []string{ada, bob} {
		draft := collections.CaregiverDraft{UserID: daughter.Id, PatientID: patient, Relationship: "child", Scope: "read"}
		if patient == bob {
			draft.EndsAt = r.now.Add(10 * time.Minute)
		}
		var err error
		if access[patient], err = collections.AddCaregiver(r.app, draft, r.now); err != nil {
			t.Fatal(err)
		}
	}
	r.auth.Evict(daughter.Id)
	stream := r.mustSubscribe(daughter)
	note := 0
	news := func() (patients []any) {
		t.Helper()
		for _, patient := range []string{ada, bob, cleo} {
			note++
			r.note(audit.ObservationCreate, audit.ResourceObservation, fmt.Sprint("o", note), patient)
		}
		r.round(time.Second)
		messages, open := received(t, stream)
		for _, m := range messages {
			patients = append(patients, m.Data.(map[string]any)["patient_id"])
		}
		if !open { // the console reconnects
			stream = r.mustSubscribe(daughter)
		}
		return patients
	}
	if got := news(); !cmp.Equal(got, []any{ada, bob}) {
		t.Errorf("the caregiver got %v", got)
	}
	r.now = r.now.Add(11 * time.Minute) // past the last day of bob, without an event
	if got := news(); !cmp.Equal(got, []any{ada}) {
		t.Errorf("after the last day the caregiver got %v, ada is %s", got, ada)
	}
	if err := access[ada].End(r.app, "nurse@vigil.test", r.now); err != nil {
		t.Fatal(err)
	}
	r.auth.Evict(daughter.Id)
	note++
	r.note(audit.ObservationCreate, audit.ResourceObservation, fmt.Sprint("o", note), ada)
	r.round(time.Second)
	if got, open := received(t, stream); len(got) != 0 || open {
		t.Errorf("after both ended the caregiver got %v, open %v", got, open)
	}
}
