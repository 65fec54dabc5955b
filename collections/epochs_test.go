package collections_test

import (
	"errors"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Epochs only grow, an epoch that continues is recorded once, and a number larger than 15 digits sorts like the others.
func TestEpochs(t *testing.T) {
	app := vigiltest.NewApp(t)
	for i, step := range []struct {
		epoch, newest uint64
		err           error
	}{
		{7, 7, nil}, {7, 7, nil}, {6, 7, collections.ErrEpoch}, {10, 10, nil}, {9, 10, collections.ErrEpoch}, {1 << 63, 1 << 63, nil}, {10, 1 << 63, collections.ErrEpoch},
	} {
		if err := collections.BeginEpoch(app, step.epoch, "node-a", vigiltest.Clock); !errors.Is(err, step.err) {
			t.Errorf("step %d: %v, want %v", i, err, step.err)
		}
		if newest, err := collections.NewestEpoch(app); err != nil || newest != step.newest {
			t.Errorf("step %d: newest %d, want %d: %v", i, newest, step.newest, err)
		}
	}
	var rows int
	if err := app.DB().NewQuery("SELECT COUNT(*) FROM epochs WHERE node = 'node-a' AND first_audit_id = '000000000000001'").Row(&rows); err != nil || rows != 3 {
		t.Errorf("%d rows, want 3: %v", rows, err)
	}
}
