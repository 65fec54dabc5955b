package routes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// follower exports the changes since its previous export, of all types.
type follower struct {
	*bulk
	since string
}

func newFollower(t *testing.T) *follower {
	t.Helper()
	f := &follower{bulk: newBulk(t, "system/*.rs")}
	f.passHour() // accounts changed just before appear once more
	f.since = f.manifest(f.start("/$export"))["transactionTime"].(string)
	f.passHour()
	return f
}

// passHour lets an hour pass, longer than any token's lifetime.
func (f *follower) passHour() {
	f.now = f.now.Add(time.Hour)
	f.token = f.client("system/*.rs")
	f.machine = f.token
}

// next returns the resources exported and deleted since the last call, and lets an hour pass.
func (f *follower) next() (exported map[string]object, deleted []string) {
	f.t.Helper()
	manifest := f.manifest(f.start("/$export?_since=" + f.since))
	for _, bundle := range f.lines(manifest, "deleted") {
		for _, entry := range bundle["entry"].([]any) {
			deleted = append(deleted, entry.(object)["request"].(object)["url"].(string))
		}
	}
	slices.Sort(deleted)
	f.since = manifest["transactionTime"].(string)
	exported = f.lines(manifest, "output")
	f.passHour()
	return exported, deleted
}

// wantNoChanges checks that nothing is exported.
func (f *follower) wantNoChanges() {
	f.t.Helper()
	if exported, deleted := f.next(); len(exported)+len(deleted) != 0 {
		f.t.Errorf("nothing was changed, and exported %v, deleted %v", namesOf(exported), deleted)
	}
}

// referencesOf returns the references to a patient's resources.
func (f *follower) referencesOf(patient string) (references []string) {
	f.t.Helper()
	references = []string{"Patient/" + patient}
	for _, kind := range []string{"Observation", "Provenance", "Flag"} {
		for _, id := range f.search("/" + kind + "?patient=" + patient) {
			references = append(references, kind+"/"+id)
		}
	}
	slices.Sort(references)
	return references
}

// A deleted patient's resources of all types are exported as deleted, and again when the patient is restored.
func TestExportSinceRestoredPatient(t *testing.T) {
	f := newFollower(t)
	f.wantNoChanges()
	want := f.referencesOf(f.bob)
	if len(want) != 6 || !strings.HasPrefix(want[0], "Flag/") {
		t.Fatalf("Bob has %v", want)
	}
	f.request(authz.Admin, "DELETE", "/patients/"+f.bob+"/", nil).want(204)
	exported, deleted := f.next()
	deleted = slices.DeleteFunc(deleted, func(name string) bool { return name == "CareTeam/"+f.bob })
	if len(exported) != 0 || !slices.Equal(deleted, want) {
		t.Errorf("deleted: exported %v, deleted %v, want %v", namesOf(exported), deleted, want)
	}
	f.wantNoChanges()
	f.request(authz.Admin, "POST", "/patients/"+f.bob+"/restore/", nil).want(200)
	if exported, deleted := f.next(); !slices.Equal(namesOf(exported), want) || len(deleted) != 0 {
		t.Errorf("restored: exported %v, deleted %v, want %v", namesOf(exported), deleted, want)
	}
	f.wantNoChanges()
}

// A device that loses its patient is exported as changed, however the assignment ended.
func TestExportSinceUnassignedDevice(t *testing.T) {
	f := newFollower(t)
	id := f.search("/Device")[0]
	holder := func(device object) any {
		patient, _ := device["patient"].(object)
		return patient["reference"]
	}
	assign := func(device, patient string) {
		f.request(authz.Admin, "POST", "/devices/assign/", object{"device_id": device, "patient_id": patient, "device_type": "blood_pressure_monitor"}).want(200)
	}
	check := func(what string, want any) {
		t.Helper()
		at := f.now.Truncate(time.Second)
		if rec := f.do("GET", "/Device/"+id, "", "If-Modified-Since", at.Add(-time.Second).Format("Mon, 02 Jan 2006 15:04:05 GMT")); rec.Code != 200 {
			t.Errorf("%s: not modified (%d)", what, rec.Code)
		}
		if got := f.search("/Device?_id=" + id + "&_lastUpdated=ge" + at.Format(time.RFC3339)); len(got) != 1 {
			t.Errorf("%s: not found by when it changed", what)
		}
		exported, _ := f.next()
		if device := exported["Device/"+id]; device == nil || holder(device) != want {
			t.Errorf("%s: %v", what, device)
		}
		f.wantNoChanges()
	}
	f.request(authz.Admin, "POST", "/devices/"+cuff+"/unassign/", object{"reason": "Moved."}).want(200)
	check("unassigned", nil)
	assign(cuff, f.ada)
	check("assigned", "Patient/"+f.ada)
	f.request(authz.Admin, "POST", "/devices/"+cuff+"/replace/", object{"new_device_id": "BPM-00043", "reason": "Broken."}).want(200)
	check("replaced", nil)
	id = f.search("/Device?patient=" + f.ada)[0]
	f.request(authz.Admin, "DELETE", "/patients/"+f.ada+"/", nil).want(204)
	check("freed", nil)
}

// A care team without members is exported as deleted, however its last member left.
func TestExportSinceEmptyCareTeam(t *testing.T) {
	f := newFollower(t)
	team, nurse := "CareTeam/"+f.ada, []object{{"user_id": f.people[authz.Nurse].Number()}}
	change := func(body object) { f.request(authz.Admin, "PUT", "/patients/"+f.ada+"/care-team/", body).want(200) }
	check := func(what string, there bool) {
		t.Helper()
		exported, deleted := f.next()
		if (exported[team] != nil) != there || slices.Contains(deleted, team) == there {
			t.Errorf("%s: exported %v, deleted %v", what, namesOf(exported), deleted)
		}
		f.wantNoChanges()
	}
	change(object{"primary_provider_id": nil})
	check("without a provider", true)
	change(object{"members": []object{}})
	check("without anybody", false)
	change(object{"members": nurse})
	check("with a nurse", true)
	change(object{"members": []object{}, "primary_provider_id": f.people[authz.Provider].Number()})
	check("with a provider", true)
	change(object{"primary_provider_id": nil})
	check("without the provider", false)
	f.request(authz.Admin, "PATCH", "/patients/"+f.ada+"/", object{"primary_provider_id": f.people[authz.Provider].Number()}).want(200)
	check("with a provider again", true)
	f.request(authz.Admin, "PATCH", "/patients/"+f.ada+"/", object{"primary_provider_id": nil}).want(200)
	check("without the provider again", false)
	f.request(authz.Admin, "PATCH", "/patients/"+f.ada+"/", object{"phone": "+15550123"}).want(200)
	if exported, deleted := f.next(); !slices.Equal(namesOf(exported), []string{"Patient/" + f.ada}) || len(deleted) != 0 {
		t.Errorf("another telephone: exported %v, deleted %v", namesOf(exported), deleted)
	}
}
