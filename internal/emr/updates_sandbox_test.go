package emr_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
)

// With any faults of network and EMR, each retracted reading is marked there by exactly one version, or was never stored.
func TestUpdatesExactlyOnceThroughFaults(t *testing.T) {
	app := newApp(t)
	const readings = 40
	queueMany(t, app, readings)
	practice := newSandboxEMR(t, &sandboxSigningKey().PublicKey, func() {}, func(next http.Handler) http.Handler {
		troubled := injectFaults(0.4, 18)(onObservations(next))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut { // the faults apply to the collection's address only
				r.Header.Set("X-Path", r.URL.Path)
				r.URL.Path = "/Observation"
			}
			troubled.ServeHTTP(w, r)
		})
	})
	client, err := sandboxClient(practice.url, sandboxSigningKey(), true)
	if err != nil {
		t.Fatal(err)
	}
	w := sandboxWorker(client, nil)
	deliverAll(t, w, app)
	var ids []string
	if err := app.DB().NewQuery("SELECT id FROM observations ORDER BY id").Column(&ids); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		err := app.RunInTransaction(func(tx core.App) error {
			if err := collections.SetEnteredInError(tx, id, "nurse@example.org", "a drill", 2, wallClock()); err != nil {
				return err
			}
			return emr.Retract(tx, id, patient, now, wallClock())
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	deliverAll(t, w, app)
	stored := practice.emr.Observations()
	if len(stored) != readings {
		t.Fatalf("the EMR has %d of %d", len(stored), readings)
	}
	for _, o := range stored {
		if o.Creates != 1 || o.Versions != 2 || o.Status != "entered-in-error" {
			t.Errorf("%s: created %d times, %d versions, %s", o.ID, o.Creates, o.Versions, o.Status)
		}
	}
}

// onObservations restores the requests' own addresses.
func onObservations(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if own := r.Header.Get("X-Path"); own != "" && strings.HasPrefix(own, "/fhir/") {
			r.URL.Path = own
		}
		next.ServeHTTP(w, r)
	})
}
