package sandbox

import (
	"path/filepath"
	"strings"
	"testing"
)

// An update is a version of a stored Observation: the id stays, the journal has both, and nothing is created.
func TestUpdateObservation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "emr.jsonl")
	keep := func(o *EMROptions) { o.JournalFile = path }
	w := newWorld(t, keep)
	token := w.token()
	w.mustCall("POST", "Observation", token, bloodPressure(observationID))
	withdrawn := strings.Replace(strings.Replace(bloodPressure(observationID), `"final"`, `"entered-in-error"`, 1), "{", `{"id":"obs-000001",`, 1)
	answer, body := w.mustCall("PUT", "Observation/obs-000001", token, withdrawn)
	if answer.StatusCode != 200 || body["status"] != "entered-in-error" || answer.Header.Get("ETag") != `W/"2"` || body["meta"].(map[string]any)["versionId"] != "2" {
		t.Errorf("update: %d %v %v", answer.StatusCode, answer.Header, body)
	}
	for name, test := range map[string]struct {
		path, body string
		status     int
	}{
		"another id":      {"obs-000002", withdrawn, 400},
		"no id":           {"obs-000001", bloodPressure(observationID), 400},
		"not one of ours": {"mine", strings.Replace(withdrawn, "obs-000001", "mine", 1), 405},
		"another patient": {"obs-000001", strings.Replace(withdrawn, "pat-1001", "pat-1002", 1), 422},
		"no status":       {"obs-000001", strings.Replace(withdrawn, "entered-in-error", "gone", 1), 422},
	} {
		if answer, _ := w.mustCall("PUT", "Observation/"+test.path, token, test.body); answer.StatusCode != test.status {
			t.Errorf("%s: %d, want %d", name, answer.StatusCode, test.status)
		}
	}
	if answer, _ := w.mustCall("PUT", "Observation/obs-000001", "", withdrawn); answer.StatusCode != 401 {
		t.Errorf("without a token: %d", answer.StatusCode)
	}
	stats := w.emr.Stats()
	if stats.Created != 1 || stats.Updated != 1 || stats.Observations != 1 || stats.MostPerIdentifier != 1 {
		t.Errorf("%+v", stats)
	}
	if again := newWorld(t, keep).emr.Observations(); len(again) != 1 || again[0].Status != "entered-in-error" || again[0].Versions != 2 || again[0].Creates != 1 {
		t.Errorf("after a restart: %+v", again)
	}
}
