package e2e

import (
	"net/http/httptest"
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// The built service reads the chart of a linked patient with a token of its own, proposes what the record lacks, and sets a hold during a stay,
// at night and on request.
func TestContextOfEMR(t *testing.T) {
	emrServer := httptest.NewUnstartedServer(nil)
	emrURL := "http://" + emrServer.Listener.Addr().String()
	p := newPractice(t, append(emrSettings(emrURL), "VIGIL_EMR_CONTEXT=true", "VIGIL_EMR_AUTO_HOLD=true")...)
	addr := freeAddr(t)
	p.URL = "http://" + addr
	emr, err := sandbox.NewEMR(sandbox.EMROptions{BaseURL: emrURL, PracticeCode: practiceCode, ClientID: clientID, JWKSURL: p.URL + "/.well-known/jwks.json", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	emr.AddDemoCharts()
	emrServer.Config.Handler = emr
	emrServer.Start()
	t.Cleanup(emrServer.Close)
	serveHere(t, p, addr)

	patient := p.patient(t, object{"external_id": "pat-1001"})
	path := "/api/v1/patients/" + patient + "/emr-context/"
	nurse := p.user(t, "nurse", nil)
	wantAt(t, p.get(t, path, nurse).expect(t, 200), object{"state": "stale", "fetched_at": nil})
	shown := p.post(t, path+"refresh/", nurse, object{}).expect(t, 200)
	wantAt(t, shown, object{"state": "current", "medications.0.dosage": "1 tablet daily", "allergies.0.text": "Penicillin", "coverage.0.payer": "Aetna", "unavailable.0": nil})

	err = emr.AddChart(object{
		"resourceType": "Encounter", "id": "stay", "status": "in-progress", "class": object{"code": "IMP"},
		"subject": object{"reference": "Patient/pat-1001"}, "period": object{"start": now().UTC().Format("2006-01-02")},
	})
	if err != nil {
		t.Fatal(err)
	}
	wantAt(t, p.post(t, path+"refresh/", nurse, object{}).expect(t, 200), object{"encounters.0.class": "IMP"})
	wantAt(t, p.get(t, "/api/v1/patients/"+patient+"/", nurse).expect(t, 200), object{"hold.reason": "hospital", "hold.by": "system"})
	if status := p.runJob(t, "emr-context"); status != "succeeded" {
		t.Errorf("the job %s", status)
	}
	if stats := emr.Stats(); stats.TokensRefused != 0 {
		t.Errorf("the EMR saw %+v", stats)
	}
}
