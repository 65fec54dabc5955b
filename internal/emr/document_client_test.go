package emr_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// makeDocument lists the ids of the readings that count, in place of a report.
func makeDocument(app core.App, d emr.Document, now time.Time) (pdf []byte, isEmpty bool, err error) {
	var ids []string
	err = app.DB().NewQuery(`SELECT id FROM observations WHERE patient = {:patient} AND status = 'final' AND measured_at >= {:from} AND measured_at < {:to} ORDER BY id`).
		Bind(dbx.Params{"patient": d.PatientID, "from": collections.FormatInstant(d.From), "to": collections.FormatInstant(d.To)}).Column(&ids)
	return fmt.Appendf(nil, "%%PDF-1.7 %s %s", collections.FormatInstant(now), strings.Join(ids, " ")), len(ids) == 0, err
}

// addMonthReading stores a reading with its delivery.
func addMonthReading(t testing.TB, app core.App, patientID string, at time.Time) (id string) {
	t.Helper()
	id = collections.NewUUID()
	insert(t, app, collections.Observations, dbx.Params{
		"id": id, "patient": patientID, "observation_type": "weight", "weight_kg": 80.0, "status": "final", "review_state": "accepted", "source": "api",
		"measured_at": collections.FormatInstant(at), "created_at": collections.FormatInstant(time.Now()), "fhir_status": "pending",
	})
	if _, err := emr.Queue(app, emr.Draft{ObservationID: id, PatientID: patientID, ObservationType: "weight"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	return id
}

func shownIn(document map[string]any, reading string) bool {
	content := document["content"].([]any)[0].(map[string]any)["attachment"].(map[string]any)
	pdf, _ := base64.StdEncoding.DecodeString(content["data"].(string))
	return strings.Contains(string(pdf), reading)
}

func statusOf(t testing.TB, app core.App, reading string) (status string) {
	t.Helper()
	if err := app.DB().NewQuery("SELECT fhir_status FROM observations WHERE id = {:id}").Bind(dbx.Params{"id": reading}).Row(&status); err != nil {
		t.Fatal(err)
	}
	return status
}

// An EMR that takes documents only has the report of each ended month once, through lost answers, errors and kills; readings of the month are
// transmitted then, others wait and count nowhere. A retracted reading is in no document that counts without a task.
func TestMonthDocuments(t *testing.T) {
	for name, isSearchRefused := range map[string]bool{"searchable": false, "search refused": true} {
		t.Run(name, func(t *testing.T) {
			app := newApp(t)
			sandboxSigningKey()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now().UTC() // the first of January
				var old, current []string
				for day := range 30 {
					old = append(old, addMonthReading(t, app, patient, start.AddDate(0, 0, -1-day)))
				}
				current = append(current, addMonthReading(t, app, patient, start.Add(time.Minute)))
				unlinked := addMonthReading(t, app, unlinkedPatient, start.AddDate(0, 0, -3))
				simulated := playProfile(t, app, "documents-only", isSearchRefused)
				checkMonthDocuments(t, app, simulated, old, append(current, unlinked), isSearchRefused)
				if isSearchRefused {
					return
				}
				err := app.RunInTransaction(func(tx core.App) error {
					if _, err := tx.DB().NewQuery("UPDATE observations SET status = 'entered_in_error' WHERE id = {:id}").Bind(dbx.Params{"id": old[7]}).Execute(); err != nil {
						return err
					}
					return emr.Retract(tx, old[7], patient, start.AddDate(0, 0, -8), time.Now().UTC())
				})
				if err != nil {
					t.Fatal(err)
				}
				if got := statusOf(t, app, old[7]); got != "pending" {
					t.Errorf("after the retraction the reading is %s", got)
				}
				runWorker(t, app, directly{simulated, 20 * time.Millisecond}, 24*time.Hour)
				documents := simulated.Documents()
				if len(documents) != 2 || !shownIn(documents[0], old[7]) || shownIn(documents[1], old[7]) || documents[1]["relatesTo"] == nil || statusOf(t, app, old[7]) != "transmitted" {
					t.Errorf("%d documents, and the reading is %s", len(documents), statusOf(t, app, old[7]))
				}
				if due, err := collections.CountCorrectionsDue(app); err != nil || due != 1 {
					t.Errorf("%d tasks for a document that still counts, %v", due, err)
				}
			})
		})
	}
}

func checkMonthDocuments(t *testing.T, app core.App, simulated *sandbox.EMR, old, waiting []string, isSearchRefused bool) {
	t.Helper()
	documents := simulated.Documents()
	if len(documents) > 1 || len(simulated.Observations()) > 0 {
		t.Errorf("%d documents and %d observations", len(documents), len(simulated.Observations()))
	}
	var row struct{ Status, Code string }
	if err := app.DB().NewQuery("SELECT status, error_code AS code FROM transmissions WHERE form = 'document' AND patient = {:id}").Bind(dbx.Params{"id": patient}).One(&row); err != nil {
		t.Fatal(err)
	}
	isForPerson := isSearchRefused && row.Status == "failed" && row.Code == emr.CodeOutcomeUnknown
	if !isForPerson && (row.Status != "transmitted" || len(documents) != 1) {
		t.Errorf("%+v with %d documents", row, len(documents))
	}
	for _, id := range old {
		if got := statusOf(t, app, id); got != map[bool]string{true: "pending", false: "transmitted"}[isForPerson] {
			t.Fatalf("a reading of the month is %s", got)
		}
	}
	if slices.ContainsFunc(waiting, func(id string) bool { return statusOf(t, app, id) != "pending" }) {
		t.Error("a reading that is in no document does not wait")
	}
	if pending, processing, retrying, err := emr.Backlog(app); err != nil || pending+processing+retrying != 0 {
		t.Errorf("%d, %d and %d queued, %v", pending, processing, retrying, err)
	}
}

// A reading that is stored just before due deliveries are leased waits like the earlier ones: none is sent to an EMR that takes documents only.
func TestReadingStoredDuringRound(t *testing.T) {
	app := newApp(t)
	sandboxSigningKey()
	synctest.Test(t, func(t *testing.T) {
		simulated := playProfile(t, app, "documents-only", false)
		at := time.Now().UTC()
		w, client := newProfileWorker(t, app, directly{simulated, 20 * time.Millisecond}, func() { at = at.Add(-time.Minute); addMonthReading(t, app, patient, at) })
		for range 3 {
			if _, err := w.Sweep(t.Context(), app); err != nil {
				t.Fatal(err)
			}
		}
		if parked, err := collections.CountSuspendedReadings(app); err != nil || parked < 3 || simulated.Stats().Refused != 0 || client.Plan().Mode != emr.ModeDocument {
			t.Errorf("%d readings wait, and the EMR refused %d requests, %v", parked, simulated.Stats().Refused, err)
		}
	})
}
