package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/authz"
)

// TestRoleMap uses group names as directories write them.
func TestRoleMap(t *testing.T) {
	got, err := parseRoleMap(" RPM Leads = clinical_manager ,CN=nurses=nurse")
	if err != nil {
		t.Fatal(err)
	}
	want := []GroupRole{{"RPM Leads", authz.ClinicalManager}, {"CN=nurses", authz.Nurse}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
