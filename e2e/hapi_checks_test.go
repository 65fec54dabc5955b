package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
)

// rejectedReading is a reading that HAPI rejects, with the expected error code.
type rejectedReading struct{ id, why, code string }

// sendRejected sends readings of patients that HAPI does not have or no longer has, and one with a profile that it rejects.
func (d *drill) sendRejected(t *testing.T) {
	t.Helper()
	const temperature = "http://hl7.org/fhir/us/core/StructureDefinition/us-core-body-temperature"
	d.hapi.put(t, "StructureDefinition", "no-temperatures", object{
		"url": temperature, "name": "NoTemperatures", "status": "active", "kind": "resource", "abstract": false, "type": "Observation",
		"baseDefinition": "http://hl7.org/fhir/StructureDefinition/Observation", "derivation": "constraint",
		"differential": object{"element": []object{{"id": "Observation", "path": "Observation"}, {"id": "Observation.bodySite", "path": "Observation.bodySite", "min": 1}}},
	})
	d.hapi.put(t, "Patient", "pat-warm", object{"active": true})
	d.hapi.put(t, "Patient", "pat-gone", object{"active": true})
	sendEMR(t, "DELETE", d.hapi.url+"/Patient/pat-gone", "", nil, "").expect(t, 200)
	for _, c := range []struct{ why, externalID, kind, code string }{
		{"unknown", "pat-nobody", "blood_pressure", "patient_not_found"},
		{"deleted", "pat-gone", "blood_pressure", "patient_not_found"},
		{"refused profile", "pat-warm", "body_temperature", "invalid_resource"},
	} {
		gateway := "GW-" + strings.ReplaceAll(c.why, " ", "-")
		d.giveDevice(t, "DEV-"+gateway, d.patient(t, object{"gateway_patient_id": gateway, "external_id": c.externalID}))
		event := measurement(gateway, "DEV-"+gateway, 120, 70, d.began)
		if c.kind == "body_temperature" {
			event["measurement_type"], event["values"], event["unit"] = c.kind, object{"temperature": 37.0}, "C"
		}
		d.refused = append(d.refused, rejectedReading{text(t, d.signed(t, event).expect(t, 200), "observation_id"), c.why, c.code})
	}
}

// drained waits until no delivery is pending, and reports the pending ones at the limit.
func (d *drill) drained(t *testing.T, what string) {
	t.Helper()
	db := d.database(t)
	count := `SELECT COUNT(*) FROM transmissions WHERE (status IN ('pending', 'processing') OR (status = 'failed' AND next_retry_at != '')) AND observation NOT IN ('`
	for _, r := range d.refused {
		count += r.id + "', '"
	}
	count += "')"
	for began := time.Now(); time.Since(began) < drillLimit; pause(t.Context(), 100*time.Millisecond) {
		if number(t, db, count) == 0 {
			return
		}
	}
	t.Errorf("%s: after %v still pending: %v", what, drillLimit, sums(t, db, `SELECT status || ' ' || error_code || ' ' || error_message AS name, COUNT(*) AS n FROM transmissions GROUP BY 1`))
}

// wantDelivered waits until no delivery is pending; only readings that HAPI rejects may be dead letters.
func (d *drill) wantDelivered(t *testing.T) {
	t.Helper()
	began := time.Now()
	d.drained(t, "the end")
	var given []struct {
		ID      string `db:"observation"`
		Code    string `db:"error_code"`
		Message string `db:"error_message"`
	}
	if err := d.database(t).NewQuery(`SELECT observation, error_code, error_message FROM transmissions WHERE status = 'failed' AND error_code != 'entered_in_error'`).All(&given); err != nil {
		t.Fatal(err)
	}
	stages, stories := map[string]int{}, map[string]string{}
	for _, g := range given {
		if slices.ContainsFunc(d.refused, func(r rejectedReading) bool { return r.id == g.ID }) {
			continue
		}
		for _, r := range d.readings {
			if r.id == g.ID {
				what := fmt.Sprintf("%s: %s (%s)", r.stage.name, g.Code, g.Message)
				stages[what]++
				stories[what] = d.gate.history(r)
			}
		}
	}
	for what, n := range stages {
		t.Errorf("%d dead letters from stage %s, for example:\n    %s", n, what, stories[what])
	}
	t.Logf("time until all were delivered: %v", time.Since(began).Round(time.Second))
}

// wantFailures compares the errors of the rejected readings with their causes. Without conditional create, a create whose
// first answer timed out is sent again, and then rejected, only after the first request can no longer arrive.
func (d *drill) wantFailures(t *testing.T) {
	t.Helper()
	for _, f := range d.refused {
		var code, status, message, next string
		for began := time.Now(); time.Since(began) < drillLimit; pause(t.Context(), time.Second) {
			if err := d.database(t).NewQuery(`SELECT error_code, status, error_message, next_retry_at FROM transmissions WHERE observation = {:id}`).Bind(dbx.Params{"id": f.id}).Row(&code, &status, &message, &next); err != nil {
				t.Fatal(err)
			}
			if code == f.code || status == "failed" && next == "" {
				break
			}
		}
		if code != f.code || status != "failed" {
			t.Errorf("%s: status %s with %q (%s), want failed with %q", f.why, status, code, message, f.code)
		}
	}
}

// wantEachOnce reads HAPI's resources: no reading is missing or stored twice, and each has its current state.
func (d *drill) wantEachOnce(t *testing.T) {
	t.Helper()
	held := map[string][]storedObservation{}
	for _, k := range d.hapi.list(t, "/Observation?_count=500") {
		for _, identifier := range k.Identifier {
			held[identifier.Value] = append(held[identifier.Value], k)
		}
	}
	found, stories := map[string]int{}, map[string]string{}
	note := func(r *reading, what string, copies ...storedObservation) {
		found[what]++
		stories[what] = d.gate.history(r, copies...)
	}
	for _, r := range d.readings {
		copies := held["urn:uuid:"+r.id]
		delete(held, "urn:uuid:"+r.id)
		switch {
		case r.id == "":
			note(r, "not acknowledged")
		case len(copies) > 1:
			note(r, "there twice, came in "+r.stage.name, copies...)
		case len(copies) == 0 && r.withdrawn:
			note(r, "withdrawn before it was sent")
		case len(copies) == 0:
			note(r, "lost, came in "+r.stage.name)
		default:
			note(r, d.compare(t, r, copies[0]), copies...)
		}
	}
	for what, n := range found {
		switch what {
		case "right", "right, withdrawn", "right, completed later", "right, completed before it was sent", "withdrawn before it was sent":
			t.Logf("%d %s", n, what)
		default:
			t.Errorf("%d %s, for example:\n    %s", n, what, stories[what])
		}
	}
	if len(held) > 0 {
		t.Errorf("HAPI has %d resources that were not sent or should have been rejected: %v", len(held), held)
	}
}

// compare reports how a copy differs from its reading. The copy's versions must be the reading's states, each once and in
// order.
func (d *drill) compare(t *testing.T, r *reading, k storedObservation) string {
	t.Helper()
	versions := []storedObservation{k}
	if k.Meta.VersionID != "1" {
		versions = d.hapi.list(t, "/Observation/"+k.ID+"/_history?_count=50")
		slices.Reverse(versions)
	}
	var was []string
	for _, version := range versions {
		was = append(was, version.Status)
	}
	history := strings.Join(was, ", ")
	if k.value("8480-6") != r.systolic || k.Subject.Reference != fmt.Sprint("Patient/pat-", r.patient()) {
		return fmt.Sprintf("wrong: %v of %s, want %v of pat-%d", k.value("8480-6"), k.Subject.Reference, r.systolic, r.patient())
	}
	switch {
	case r.withdrawn && slices.Contains([]string{"final, entered-in-error", "final, amended, entered-in-error"}, history):
		return "right, withdrawn"
	case !r.withdrawn && k.value("8867-4") != r.pulse:
		return fmt.Sprintf("without its pulse, came in %s, was %s", r.stage.name, history)
	case !r.withdrawn && r.completed && history == "final, amended":
		return "right, completed later"
	case !r.withdrawn && r.completed && len(was) == 1:
		return "right, completed before it was sent"
	case !r.withdrawn && !r.completed && history == "final":
		return "right"
	}
	return fmt.Sprintf("with the wrong versions: came in %s, withdrawn %v, completed %v, was %s", r.stage.name, r.withdrawn, r.completed, history)
}

// wantNoAttemptsUsed checks that failures of the EMR do not use up a reading's attempts: an outage costs at most the first
// retry, and failures within one delivery cost none. A few of the latter are allowed for a slow machine.
func (d *drill) wantNoAttemptsUsed(t *testing.T) {
	t.Helper()
	used := sums(t, d.database(t), `SELECT observation AS name, attempt_count AS n FROM transmissions`)
	readings, stories := map[*stage]int{}, map[*stage]string{}
	for _, r := range d.readings {
		if !r.isUnchanged() || !r.stage.outage && !r.stage.noAttemptsUsed || used[r.id] == 0 || r.stage.outage && used[r.id] == 1 {
			continue
		}
		readings[r.stage]++
		stories[r.stage] = fmt.Sprintf("%d retries:\n    %s", used[r.id], d.gate.history(r))
	}
	for s, n := range readings {
		if s.outage || n > s.readings/10 {
			t.Errorf("%s: %d readings used attempts, for example %s", s.name, n, stories[s])
		}
	}
}

// wantOrder checks that after an outage each patient's readings arrive in the order in which they were stored.
func (d *drill) wantOrder(t *testing.T) {
	t.Helper()
	arrived := map[string]time.Time{}
	for _, k := range d.hapi.list(t, "/Observation/_history?_count=500") {
		if k.Meta.VersionID == "1" && len(k.Identifier) > 0 {
			arrived[k.Identifier[0].Value] = k.Meta.LastUpdated
		}
	}
	last := map[int]*reading{}
	early := map[*stage]int{}
	for _, r := range d.readings {
		at, there := arrived["urn:uuid:"+r.id]
		if !r.stage.outage || !there || !r.isUnchanged() {
			continue
		}
		if before := last[r.patient()]; before != nil && before.stage == r.stage && at.Before(arrived["urn:uuid:"+before.id]) {
			early[r.stage]++
		}
		last[r.patient()] = r
	}
	for s, n := range early {
		t.Errorf("%s: %d readings arrived before an earlier one of their patient", s.name, n)
	}
}
