package access_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/access"
)

// A client has no role: whatever a role opens is closed to it.
func TestClientsHaveNoRole(t *testing.T) {
	for _, action := range access.Actions() {
		if access.Reach(access.Client, action) != access.None {
			t.Errorf("a client may %q by its role", action)
		}
	}
	if access.Client.Valid() || slices.Contains(access.Roles, access.Client) {
		t.Error("a client is no role of the contract")
	}
}

func TestClientScopes(t *testing.T) {
	for text, want := range map[string]access.ClientScope{
		"ingest": access.ScopeIngest, "patients.read": access.ScopePatientsRead, "system/Observation.rs": access.SystemScope("Observation"),
		"system/Observation.read": access.SystemScope("Observation"), "system/*.read": access.SystemScope("*"),
	} {
		if got, known := access.ParseClientScope(text); !known || got != want {
			t.Errorf("%q is %q (%v)", text, got, known)
		}
	}
	for _, text := range []string{
		"", " ", "Ingest", "ingest ", "patients", "patients.*", "*", "patients.rs", "system/", "system/.rs", "system/Observation", "system/Observation.write",
		"system/Observation.cruds", "system/observation.rs", "system/Nothing.rs", "user/Observation.rs", "patient/*.read", "openid", "observations.write", ".read", "system/.read",
	} {
		if got, known := access.ParseClientScope(text); known {
			t.Errorf("%q is taken for %q", text, got)
		}
	}
}

func TestClientScopesAllow(t *testing.T) {
	some := access.ReadClientScopes(strings.Fields("ingest system/Patient.read no.such.scope"))
	star := access.ClientScopes{access.SystemScope("*")}
	for _, test := range []struct {
		held   access.ClientScopes
		needed access.ClientScope
		want   bool
	}{
		{some, access.ScopeIngest, true},
		{some, access.ScopePatientsRead, false},
		{some, access.SystemScope("Patient"), true},
		{some, access.SystemScope("Observation"), false},
		{some, access.SystemScope("*"), false},
		{some, "no.such.scope", false},
		{some, "", false},
		{star, access.SystemScope("Observation"), true},
		{star, access.ScopePatientsRead, false},
		{nil, "", false},
		{nil, access.ScopeIngest, false},
		{access.ClientScopes{""}, "", false},
	} {
		if got := test.held.Allow(test.needed); got != test.want {
			t.Errorf("%v for %q: %v", test.held, test.needed, got)
		}
	}
	if got := star.Within(some); len(got) != 0 {
		t.Errorf("all of FHIR is within one resource: %v", got)
	}
	if got := some.Within(star).Texts(); !slices.Equal(got, []string{"system/Patient.rs"}) {
		t.Errorf("one resource is within all of FHIR: %v", got)
	}
}
