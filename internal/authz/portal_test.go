package authz_test

import (
	"encoding/csv"
	"os"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// TestPortalScopesMatchMatrix checks every action of the portal on a patient for every scope: a new one must state what caregivers may do.
func TestPortalScopesMatchMatrix(t *testing.T) {
	file, err := os.Open("testdata/portal.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	named := map[authz.Action]bool{}
	for _, row := range rows[1:] {
		action := authz.Action(row[0])
		named[action] = true
		if !authz.IsOfPatient(action) {
			t.Errorf("%q is no action of the portal on a patient", action)
		}
		for i, scope := range rows[0][1:] {
			if got := authz.PortalScope(scope).May(action); got != (row[1+i] == "yes") {
				t.Errorf("%s may %q: %v, want %s", scope, action, got, row[1+i])
			}
		}
		for _, unknown := range []authz.PortalScope{"", "owner", "Read"} {
			if unknown.May(action) {
				t.Errorf("the unknown scope %q may %q", unknown, action)
			}
		}
	}
	for _, action := range authz.Actions() {
		if authz.IsOfPatient(action) && !named[action] {
			t.Errorf("%q has no row in testdata/portal.csv", action)
		}
		if !authz.IsOfPatient(action) && authz.PortalEnter.May(action) {
			t.Errorf("a caregiver may %q", action)
		}
	}
}
