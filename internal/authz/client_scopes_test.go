package authz_test

import (
	"bytes"
	"encoding/csv"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// TestClientsHaveNoRole checks that no role permission applies to a client.
func TestClientsHaveNoRole(t *testing.T) {
	for _, action := range authz.Actions() {
		if authz.ReachOf(authz.Client, action) != authz.None {
			t.Errorf("a client may %q by its role", action)
		}
	}
	if authz.Client.Valid() || slices.Contains(authz.Roles, authz.Client) {
		t.Error("a client is no role of the contract")
	}
}

// scopeRow is a row of the scopes table in docs/decisions/roles.md.
var scopeRow = regexp.MustCompile(`^\| ([A-Za-z./?]+) \| ([A-Z]+) (\S+) \|$`)

// TestDocumentedScopesMatch compares docs/decisions/roles.md with testdata/scopes.csv, which the route tests use, and checks that each scope
// exists.
func TestDocumentedScopesMatch(t *testing.T) {
	file, err := os.ReadFile("testdata/scopes.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../../docs/decisions/roles.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for line := range strings.Lines(string(document)) {
		if m := scopeRow.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			documented[m[2]+" "+endpoint(m[3])] = m[1]
		}
	}
	for _, row := range rows[1:] {
		name := row[0] + " " + row[1]
		if documented[name] != row[2] {
			t.Errorf("%s: the table has %q, the documents have %q", name, row[2], documented[name])
		}
		if _, known := authz.ParseClientScope(row[2]); !known && row[2] != string(authz.AnySystemScope) {
			t.Errorf("%s: %q is no scope", name, row[2])
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("%s is in the documents but not in the table", name)
	}
}

func TestClientScopes(t *testing.T) {
	for text, want := range map[string]authz.ClientScope{
		"ingest": authz.ScopeIngest, "patients.read": authz.ScopePatientsRead, "system/Observation.rs": authz.SystemScope("Observation"),
		"system/Observation.read": authz.SystemScope("Observation"), "system/*.read": authz.SystemScope("*"),
	} {
		if got, known := authz.ParseClientScope(text); !known || got != want {
			t.Errorf("%q is %q (%v)", text, got, known)
		}
	}
	for _, text := range []string{
		"", " ", "Ingest", "ingest ", "patients", "patients.*", "*", "patients.rs", "system/", "system/.rs", "system/Observation", "system/Observation.write",
		"system/Observation.cruds", "system/observation.rs", "system/Nothing.rs", "user/Observation.rs", "patient/*.read", "openid", "observations.write", ".read", "system/.read",
	} {
		if got, known := authz.ParseClientScope(text); known {
			t.Errorf("%q is taken for %q", text, got)
		}
	}
}

// A token may have one interaction of a scope; it opens an endpoint, and its handler looks at the interaction.
func TestPartsOfScopes(t *testing.T) {
	read := authz.ParseClientScopes([]string{"system/Patient.r", "system/Nothing.r", "system/Patient.rx"})
	whole := authz.ClientScopes{authz.SystemScope("Patient"), authz.SystemScope("Device")}
	if got := read.Strings(); !slices.Equal(got, []string{"system/Patient.r"}) {
		t.Errorf("parsed %v", got)
	}
	if !read.Admit(authz.SystemScope("Patient")) || read.Admit(authz.SystemScope("Device")) || read.Allow(authz.SystemScope("Patient")) ||
		!read.Allow(authz.SystemPart("Patient", authz.InteractionRead)) || read.Allow(authz.SystemPart("Patient", authz.InteractionSearch)) || read.Admit("") {
		t.Error("a part of a scope allows otherwise")
	}
	if got := read.Intersect(whole).Strings(); !slices.Equal(got, []string{"system/Patient.r"}) {
		t.Errorf("within the whole: %v", got)
	}
	if got := whole.Narrow("system/*.rs").Strings(); !slices.Equal(got, []string{"system/Device.rs", "system/Patient.rs"}) {
		t.Errorf("narrowed to %v", got)
	}
	if whole.Narrow("system/Flag.rs") != nil || whole.Narrow("ingest") != nil {
		t.Error("narrowed a scope that is no wildcard")
	}
}

func TestClientScopesAllow(t *testing.T) {
	some := authz.ParseClientScopes(strings.Fields("ingest system/Patient.read no.such.scope"))
	star := authz.ClientScopes{authz.SystemScope("*")}
	for _, test := range []struct {
		held   authz.ClientScopes
		needed authz.ClientScope
		want   bool
	}{
		{some, authz.ScopeIngest, true},
		{some, authz.ScopePatientsRead, false},
		{some, authz.SystemScope("Patient"), true},
		{some, authz.SystemScope("Observation"), false},
		{some, authz.SystemScope("*"), false},
		{some, "no.such.scope", false},
		{some, "", false},
		{star, authz.SystemScope("Observation"), true},
		{star, authz.ScopePatientsRead, false},
		{nil, "", false},
		{nil, authz.ScopeIngest, false},
		{authz.ClientScopes{""}, "", false},
	} {
		if got := test.held.Allow(test.needed); got != test.want {
			t.Errorf("%v for %q: %v", test.held, test.needed, got)
		}
	}
	if got := star.Intersect(some).Strings(); !slices.Equal(got, []string{"system/Patient.rs"}) {
		t.Errorf("the intersection of * and one resource is %v", got)
	}
	both := authz.ClientScopes{authz.SystemScope("Device"), authz.SystemScope("*"), authz.ScopePatientsRead}
	if got := both.Intersect(append(authz.ClientScopes{authz.SystemScope("Device")}, some...)).Strings(); !slices.Equal(got, []string{"system/Device.rs", "system/Patient.rs"}) {
		t.Errorf("the intersection is %v", got)
	}
	if got := star.Intersect(both).Strings(); !slices.Equal(got, []string{"system/*.rs"}) {
		t.Errorf("all of FHIR is within itself: %v", got)
	}
	if got := some.Intersect(star).Strings(); !slices.Equal(got, []string{"system/Patient.rs"}) {
		t.Errorf("one resource is within all of FHIR: %v", got)
	}
}
