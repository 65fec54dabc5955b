package audit_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The chain covers the actor name, whether it is present or empty.
func TestChainCoversActorName(t *testing.T) {
	for what, sql := range map[string]string{
		"changed": `UPDATE audit_log SET actor_name = 'Another' WHERE id = '000000000000002'`,
		"removed": `UPDATE audit_log SET actor_name = '' WHERE id = '000000000000002'`,
		"added":   `UPDATE audit_log SET actor_name = 'Somebody' WHERE id = '000000000000001'`,
	} {
		app := vigiltest.NewApp(t)
		for _, actor := range []audit.Actor{audit.System(), audit.Client("c-1", "Device cloud", audit.Origin{}), audit.System()} {
			if err := audit.Append(app, audit.Entry{Event: audit.ObservationCreate, Actor: actor}, vigiltest.Clock); err != nil {
				t.Fatal(err)
			}
		}
		if result, err := audit.Verify(app, nil); err != nil || !result.Valid || result.Checked != 3 {
			t.Fatalf("%+v, %v", result, err)
		}
		tamper(t, app, sql)
		if result, err := audit.Verify(app, nil); err != nil || result.Valid || result.Problem != audit.RowChanged {
			t.Errorf("a name %s: %+v, %v", what, result, err)
		}
	}
}

// A trail from before actors had names verifies unchanged, so a backup of an older version can be verified before it is opened.
func TestTrailWithoutActorNames(t *testing.T) {
	app := vigiltest.NewApp(t)
	for range 3 {
		if err := audit.Append(app, audit.Entry{Event: audit.ObservationCreate, Actor: audit.System()}, vigiltest.Clock); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := app.NonconcurrentDB().NewQuery(`ALTER TABLE audit_log DROP COLUMN actor_name`).Execute(); err != nil {
		t.Fatal(err)
	}
	if result, err := audit.Verify(app, nil); err != nil || !result.Valid || result.Checked != 3 {
		t.Errorf("%+v, %v", result, err)
	}
}
