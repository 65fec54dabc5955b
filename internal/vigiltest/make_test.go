package vigiltest

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A C compiler is asked for on the machine that it compiles for: for another one, `make build` takes what needs Go alone.
func TestMakeBuildsForOtherMachines(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make here")
	}
	env := slices.DeleteFunc(os.Environ(), func(set string) bool { // what the make that runs this test was told
		return strings.HasPrefix(set, "SQLITE=") || strings.HasPrefix(set, "MAKE")
	})
	for _, machine := range []string{"GOOS=windows GOARCH=amd64", "GOOS=linux GOARCH=riscv64"} {
		plan := exec.CommandContext(t.Context(), "make", "-n", "build")
		plan.Dir, plan.Env = "../..", slices.Concat(env, strings.Fields(machine))
		said, err := plan.CombinedOutput()
		if err != nil || !strings.Contains(string(said), "go build") || strings.Contains(string(said), "-static") {
			t.Errorf("%s: %v %s", machine, err, said)
		}
	}
}
