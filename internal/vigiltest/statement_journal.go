package vigiltest

import (
	"regexp"
	"testing"

	"github.com/pocketbase/pocketbase/core"
)

// abort is SQLite's code for the ABORT conflict resolution (OE_Abort).
const abort = 2

// WantNoJournal fails the test if SQLite would keep a statement journal for text. It does for a statement that writes
// several rows, its triggers' rows included, and may have to undo them: for a constraint without conflict clause, a guard
// that raises ABORT, or a function call.
func WantNoJournal(t testing.TB, app core.App, text string) {
	t.Helper()
	var steps []struct {
		Opcode string `db:"opcode"`
		Error  int    `db:"p1"`
		Then   int    `db:"p2"`
	}
	bound := regexp.MustCompile(`\?\d*`).ReplaceAllString(text, "'1'")
	if err := app.DB().NewQuery("EXPLAIN " + bound).All(&steps); err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		switch step.Opcode {
		case "Halt", "HaltIfNull":
			if step.Error == 0 || step.Then != abort {
				continue
			}
		case "Function", "PureFunc", "MustBeInt", "FkCounter":
		default:
			continue
		}
		t.Errorf("%s (%d, %d) in %s", step.Opcode, step.Error, step.Then, text)
	}
	if len(steps) == 0 {
		t.Errorf("no query plan for %s", text)
	}
}
