package routes_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
)

// A patch that changes nothing leaves no trace: no version, no timestamp, no audit entry, no entry in the change feed.
// Source: docs/decisions/patients.md, "PATCH semantics".
func TestPatchWithoutChange(t *testing.T) {
	c := newClinic(t)
	made := c.request(authz.Admin, "POST", "/patients/", whole).want(201).object()
	id := made["id"].(string)
	path := "/patients/" + id + "/"
	first := c.call(authz.Nurse, "GET", path, "")
	tag := first.Header().Get("ETag")
	trace := func() (version, changes, entries int) {
		t.Helper()
		p, err := collections.FindPatient(c.app, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.app.DB().NewQuery("SELECT COUNT(*) FROM changes WHERE record = '" + id + "'").Row(&changes); err != nil {
			t.Fatal(err)
		}
		page, _, err := audit.List(c.app, audit.Filter{Event: string(audit.PatientUpdate), PatientID: id}, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		return p.Version(), changes, len(page)
	}
	version, changes, entries := trace()
	if changes == 0 || entries != 0 {
		t.Fatalf("%d changes and %d entries to begin with", changes, entries)
	}
	for _, step := range []struct{ method, body string }{
		{"PATCH", `{}`},
		{"PATCH", `{"unknown":{"a":1},"active":false,"id":"x"}`},
		{"PATCH", `{"phone":"2125550123"}`},
		{"PATCH", `{"phone":" 2125550123 ","icd10_codes":["i10","E11.9"],"ssn":"123-45-6789","mrn":"A-1"}`},
		{"PATCH", `{"address":{"city":"Boston"},"insurance":{"secondary":{"member_id":"M2"}},"monitoring_schedule":{"weight":{"per_day":1}}}`},
		{"PATCH", `{"primary_provider_id":null}`},
		{"PUT", whole},
	} {
		c.now = c.now.Add(time.Minute)
		for _, header := range [][]string{nil, {"If-Match", tag}} {
			rec := c.call(authz.Nurse, step.method, path, step.body, append([]string{"Content-Type", "application/json"}, header...)...)
			replyOf(t, step.method+" "+step.body, rec).want(200)
			if rec.Header().Get("ETag") != tag || rec.Body.String() != first.Body.String() {
				t.Errorf("%s %s: %s, not %s\n%s\nnot\n%s", step.method, step.body, rec.Header().Get("ETag"), tag, rec.Body, first.Body)
			}
		}
		rec := c.call(authz.Nurse, step.method, path, step.body, "Content-Type", "application/json", "If-Match", `"other"`)
		replyOf(t, "stale "+step.method, rec).want(412, "precondition_failed")
		if v, ch, e := trace(); v != version || ch != changes || e != entries {
			t.Errorf("%s %s: version %d, %d changes, %d entries, not %d, %d, %d", step.method, step.body, v, ch, e, version, changes, entries)
		}
	}

	// A patch with one new value among equal ones changes that value, once.
	rec := c.call(authz.Nurse, "PATCH", path, `{"phone":"2125550123","email":"ada@elsewhere.example"}`, "If-Match", tag)
	replyOf(t, "a new address", rec).want(200)
	if v, ch, e := trace(); v != version+1 || ch <= changes || e != 1 || rec.Header().Get("ETag") == tag {
		t.Errorf("version %d, %d changes, %d entries, tag %s", v, ch, e, rec.Header().Get("ETag"))
	}
}
