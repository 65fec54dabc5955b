package vigiltest

import (
	"bytes"
	"embed"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

//go:embed validator
var validatorFiles embed.FS

// FHIRIssues says what a FHIR validator finds wrong with each resource, by name: against its R4 type, the R4 profiles that
// its codes oblige it to and the US Core profile it claims. It does not look at value sets, fixed codes of a value and
// empty arrays; those are for the caller. The test is skipped where there is no Node.
func FHIRIssues(t *testing.T, resources map[string]json.RawMessage) map[string][]string {
	t.Helper()
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("no %s here: resources are not validated", name)
		}
	}
	dir := t.TempDir()
	files, err := fs.Sub(validatorFiles, "validator")
	if err == nil {
		err = os.CopyFS(dir, files)
	}
	if err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--prefer-offline")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	type named struct {
		Name     string          `json:"name"`
		Resource json.RawMessage `json:"resource"`
	}
	var list []named
	for name, resource := range resources {
		list = append(list, named{name, resource})
	}
	in, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	validate := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "validate.mjs"))
	validate.Stdin, validate.Stderr = bytes.NewReader(in), os.Stderr
	out, err := validate.Output()
	if err != nil {
		t.Fatalf("validate.mjs: %v", err)
	}
	var issues map[string][]string
	if err := json.Unmarshal(out, &issues); err != nil {
		t.Fatalf("validate.mjs: %v in %s", err, out)
	}
	if len(issues) != len(resources) {
		t.Fatalf("%d of %d resources were validated", len(issues), len(resources))
	}
	return issues
}
