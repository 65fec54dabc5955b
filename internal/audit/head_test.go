package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestVerifyAgainstHead(t *testing.T) {
	app := vigiltest.NewApp(t)
	path := filepath.Join(t.TempDir(), "head")
	keep := func() audit.Result {
		t.Helper()
		result, err := audit.VerifyAndAppendHead(app, path, vigiltest.Clock)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	if keep(); fileExists(path) {
		t.Error("the head of an empty trail was written")
	}
	appendMany(t, app, 4)
	first := keep()
	appendMany(t, app, 5)
	second := keep()
	lines, err := os.ReadFile(path)
	want := "2026-01-15T13:45:00Z 4 " + first.HeadHash + "\n2026-01-15T13:45:00Z 9 " + second.HeadHash + "\n"
	if err != nil || string(lines) != want {
		t.Errorf("head file %q, want %q", lines, want)
	}
	older := replayOlder(t, app) // consistent in itself: only the head file shows the missing rows
	if result := verify(t, older); !result.Valid || result.Checked != 4 {
		t.Fatalf("the older copy: %+v", result)
	}
	app = older
	if cut := keep(); cut.Valid || *cut.FirstInvalidID != 5 || cut.Problem != audit.RowsMissing {
		t.Errorf("an older copy: %+v", cut)
	}
	for range 6 { // grow the trail again with different entries
		if err := audit.Append(app, audit.Entry{Event: audit.Login, Actor: audit.System()}, vigiltest.Clock); err != nil {
			t.Fatal(err)
		}
	}
	if regrown := keep(); regrown.Valid || *regrown.FirstInvalidID != 9 || regrown.Problem != audit.RowChanged {
		t.Errorf("after the end was replaced: %+v", regrown)
	}
	if lines, err := os.ReadFile(path); err != nil || string(lines) != want {
		t.Errorf("the head of an invalid chain was written: %q", lines)
	}
	for _, damage := range []string{"nonsense\n", "2026-01-15T13:45:00Z x y\n", "2026-01-15T13:45:00Z 0 y\n"} {
		if err := os.WriteFile(path, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.VerifyAgainstHead(app, path, nil); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("a damaged file returns %v", err)
		}
	}
}

// replayOlder returns an app with a trail of the same first four rows.
func replayOlder(t *testing.T, app core.App) *tests.TestApp {
	t.Helper()
	older := vigiltest.NewApp(t)
	appendMany(t, older, 4)
	if rows(t, older)[3].Hash != rows(t, app)[3].Hash {
		t.Fatal("the same entries gave different rows")
	}
	return older
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
