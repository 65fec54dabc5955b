package vigiltest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The static link flags apply only to the machine's own platform; for others, `make build` uses the pure Go build.
func TestMakeBuildsForOtherMachines(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	env := envWithoutMake()
	for _, machine := range []string{"GOOS=windows GOARCH=amd64", "GOOS=linux GOARCH=riscv64"} {
		plan := exec.CommandContext(t.Context(), "make", "-n", "build")
		plan.Dir, plan.Env = "../..", slices.Concat(env, strings.Fields(machine))
		said, err := plan.CombinedOutput()
		if err != nil || !strings.Contains(string(said), "go build") || strings.Contains(string(said), "-static") {
			t.Errorf("%s: %v %s", machine, err, said)
		}
	}
}

// envWithoutMake returns the environment without the variables of the make that runs this test.
func envWithoutMake() []string {
	return slices.DeleteFunc(os.Environ(), func(set string) bool { return strings.HasPrefix(set, "SQLITE=") || strings.HasPrefix(set, "MAKE") })
}

// `make torture RUNS=` prints a line for each run of either build, prints the output of failed runs, and fails when a run
// failed or is missing.
func TestMakeTortureRuns(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	const passed, failed = `=== RUN   TestTorture
=== PAUSE TestTorture
=== CONT  TestTorture
    torture_test.go:47: 3 kills; acknowledged: 141 readings, 7 alerts, 12 billing runs that made 4 entries
--- PASS: TestTorture (11.20s)
`, `=== RUN   TestTorture
    torture_test.go:47: 4 kills; acknowledged: 99 readings, 1 alerts, 2 billing runs that made 0 entries
    torture_checks_test.go:30: reading 5 is stored twice
--- FAIL: TestTorture (9.05s)
`
	for _, test := range []struct {
		name, sqlite, says string
		succeeds           bool
		lines              []string
	}{
		{"both", "c", passed + passed + "PASS\nok  \te2e\t22.4s\n", true, []string{
			"SQLite in C, run 1: PASS: 3 kills; acknowledged: 141 readings, 7 alerts, 12 billing runs that made 4 entries (11.20s)",
			"SQLite in C, run 2: PASS: 3 kills; acknowledged: 141 readings, 7 alerts, 12 billing runs that made 4 entries (11.20s)",
			"SQLite translated, run 1: PASS: 3 kills; acknowledged: 141 readings, 7 alerts, 12 billing runs that made 4 entries (11.20s)",
			"SQLite translated, run 2: PASS: 3 kills; acknowledged: 141 readings, 7 alerts, 12 billing runs that made 4 entries (11.20s)",
		}},
		{"translated alone", "go", passed + passed, true, []string{
			"SQLite in C: not run, no C compiler links static programs here, or SQLITE=go was set",
			"SQLite translated, run 1: PASS: 3 kills; acknowledged: 141 readings, 7 alerts, 12 billing runs that made 4 entries (11.20s)",
			"SQLite translated, run 2: PASS: 3 kills; acknowledged: 141 readings, 7 alerts, 12 billing runs that made 4 entries (11.20s)",
		}},
		{"one fails", "go", failed + passed, false, []string{
			"SQLite translated, run 1: FAIL: 4 kills; acknowledged: 99 readings, 1 alerts, 2 billing runs that made 0 entries (9.05s)",
			"    torture_checks_test.go:30: reading 5 is stored twice",
			"SQLite translated, run 2: PASS: 3 kills; acknowledged: 141 readings, 7 alerts, 12 billing runs that made 4 entries (11.20s)",
			"SQLite translated: 1 of 2 runs passed",
		}},
		{"none begins", "go", "e2e/x_test.go:5: undefined: y\n", false, []string{"e2e/x_test.go:5: undefined: y", "SQLite translated: 0 of 2 runs passed"}},
		{"one is missing", "c", passed, false, []string{"SQLite in C: 1 of 2 runs passed", "SQLite translated: 1 of 2 runs passed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			script := "#!/bin/sh\ncat <<'END'\n" + test.says + "END\n"
			if err := os.WriteFile(filepath.Join(folder, "go"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			run := exec.CommandContext(t.Context(), "make", "torture", "RUNS=2", "SQLITE="+test.sqlite)
			run.Dir, run.Env = "../..", append(envWithoutMake(), "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
			said, err := run.CombinedOutput()
			if (err == nil) != test.succeeds {
				t.Errorf("%v\n%s", err, said)
			}
			for _, line := range test.lines {
				if !strings.Contains("\n"+string(said), "\n"+line+"\n") {
					t.Errorf("the output lacks the line %q:\n%s", line, said)
				}
			}
		})
	}
}
