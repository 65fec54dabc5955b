package e2e

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"testing"
	"time"
)

// listen runs the SDK's subscription in a separate process; each call of the result waits for its next line.
func listen(t *testing.T, dir, url, token string) (next func() map[string]any) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "listen.mjs", url, token, "triage")
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	patience := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }) // a missing event must not hang the tests
	t.Cleanup(func() {
		patience.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	return func() (line map[string]any) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the listener ended: %v", lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		return line
	}
}

// The official SDK receives, from the built binary, what a gateway reading changes in the list: the alerts, the escalation,
// the patient's row, and the totals. A billing clerk is refused.
func TestSDKReceivesTriageEvents(t *testing.T) {
	dir := sdkFolder(t)
	p := newPractice(t).serve(t, "")
	patient := p.patient(t, object{"gateway_patient_id": "GW-LIVE"})
	next := listen(t, dir, p.URL, p.Admin(t))
	if line := next(); line["subscribed"] != true {
		t.Fatalf("the SDK prints %v", line)
	}
	p.signed(t, measurement("GW-LIVE", "BP-LIVE", 190, 125, time.Now().Add(-time.Minute))).expect(t, 200)
	heard, last := map[string]map[string]any{}, 0.0
	// Events of the enrollment may still arrive when the subscription begins.
	for len(heard) < 4 || heard["patient"]["risk_level"] != "critical" || heard["stats"]["active_escalations"] != 1.0 {
		message := next()
		if seq, _ := message["seq"].(float64); seq <= last {
			t.Errorf("%v follows %v", message["seq"], last)
		} else {
			last = seq
		}
		data, _ := message["data"].(map[string]any)
		heard[message["type"].(string)] = data
	}
	listed := p.get(t, "/api/v1/triage/patients/", p.Admin(t)).expect(t, 200)
	for field, want := range map[string]any{
		"patient_id": patient, "risk_level": "critical", "patient_name": at(t, listed, "results.0.patient_name"), "risk_score": at(t, listed, "results.0.risk_score"),
	} {
		if got := heard["patient"][field]; got != want {
			t.Errorf("the patient's %s is %v, want %v", field, got, want)
		}
	}
	if heard["alert"]["patient_id"] != patient || heard["escalation"]["patient_id"] != patient || heard["stats"]["active_escalations"] != 1.0 {
		t.Errorf("received %v", heard)
	}
	clerk := p.user(t, "data_monitor", nil)
	if line := listen(t, dir, p.URL, clerk)(); line["subscribed"] != false || line["status"] != 403.0 {
		t.Errorf("a billing clerk: %v", line)
	}
}
