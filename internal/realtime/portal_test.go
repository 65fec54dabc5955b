package realtime_test

import (
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
