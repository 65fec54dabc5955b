package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// runReleased unpacks the archive for this platform and runs its program.
func runReleased(t *testing.T, dist string) {
	t.Helper()
	folder := t.TempDir()
	name := "vigil_9.9.9_linux_" + runtime.GOARCH
	runIn(t, ".", nil, "tar", "-xzf", filepath.Join(dist, name+".tar.gz"), "-C", folder)
	program := filepath.Join(folder, name, "vigil")
	if printed := runIn(t, folder, nil, program, "--version"); !strings.Contains(printed, "9.9.9") || strings.Contains(printed, "v9.9.9") {
		t.Errorf("--version prints %q", printed)
	}
	demonstrate(t, program)
	licenses, err := os.ReadFile(filepath.Join(folder, name, "THIRD-PARTY-LICENSES.txt"))
	if err != nil || runIn(t, folder, nil, program, "licenses") != string(licenses) {
		t.Errorf("the archive's licenses are not the program's (%v)", err)
	}
	for _, file := range []string{"LICENSE", "NOTICE", "README.md", "docs/operations.md", "docs/three-practices.md", "docs/upgrading.md", "docs/runbooks.md", "deploy/vigil@.service", "deploy/prometheus/vigil.rules.yml", "deploy/helm/vigil/Chart.yaml", "deploy/practices.example.yaml"} {
		if _, err := os.Stat(filepath.Join(folder, name, file)); err != nil {
			t.Error(err)
		}
	}
}

// demonstrate starts the unpacked program with an empty environment until the first reading reaches the EMR.
func demonstrate(t *testing.T, program string) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, "demo", "--http", address, "--patients", "3", "--dir", folder)
	cmd.Dir, cmd.Env = folder, []string{"HOME=" + folder}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			t.Fatalf("the demo ended before anything was delivered: %v\n%s", err, printed.String())
		case <-look.C:
		}
		// What the EMR of the demo received.
		if received, err := os.ReadFile(filepath.Join(folder, "emr-sandbox.jsonl")); err == nil && bytes.Contains(received, []byte("Observation")) {
			break
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the demo ended with %v", err)
	}
}
