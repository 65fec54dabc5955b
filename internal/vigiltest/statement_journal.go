package vigiltest

import (
	"regexp"
	"testing"

	"github.com/pocketbase/pocketbase/core"
)

// SQLite's number of ABORT among what a statement may do when a rule is broken (OE_Abort).
const abort = 2

// WantNoJournal fails the test if SQLite would keep a journal for a statement, of what it changed so far. It does for one that writes more than one row,
// its triggers' included, where something in it could make it take them back: a rule of which nothing else is said, a guard that says ABORT, or the
// call of a function.
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
		t.Errorf("nothing is known of %s", text)
	}
}
