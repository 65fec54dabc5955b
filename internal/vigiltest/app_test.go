package vigiltest_test

import (
	"slices"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestNewAppIsIsolatedAndEmpty(t *testing.T) {
	one, two := vigiltest.NewApp(t), vigiltest.NewApp(t)
	before := vigiltest.RowCounts(t, one)
	seeded := []string{collections.Thresholds, collections.ICD10Codes, collections.ThresholdTemplates, "sequences", "triage_totals", "sealed_keys", "audit_state"} // by migrations and the first start
	for table, rows := range before {
		if rows != 0 && !slices.Contains(seeded, table) {
			t.Errorf("%s has %d rows in a new app, want 0", table, rows)
		}
	}
	for _, table := range []string{collections.Users, collections.AuditLog, "sequences", "reading_days"} {
		if _, counted := before[table]; !counted {
			t.Errorf("%s is not counted", table)
		}
	}
	user := vigiltest.User(t, one, authz.Nurse)
	if added := vigiltest.RowsAdded(t, one, before); len(added) != 2 || added["users"] != 1 || added["sequences"] != 1 {
		t.Errorf("a user adds %v", added)
	}
	if rows := vigiltest.RowCounts(t, two)[collections.Users]; rows != 0 {
		t.Error("another app sees the user")
	}
	if user.FirstName() != "Test" || user.Number() != 1 || !user.ValidatePassword(vigiltest.Password) {
		t.Errorf("the user is %q, number %d", user.FirstName(), user.Number())
	}
}

// The keyed hashes of one test binary match those of another.
func TestSealerIsFixed(t *testing.T) {
	if got := vigiltest.Sealer().LoginKey("a@b.c"); got != "1LIidktmnHS6xXgP7Q2D32dL6-BjoeDtaSykUferdsU" {
		t.Errorf("the keyed hash is %s", got)
	}
}
