package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// fingerprint says on what the figures were taken.
func fingerprint(scratch string) string {
	commit := "unknown commit"
	if out, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil { //nolint:noctx // a moment
		commit = strings.TrimSpace(string(out))
	}
	times := syncTimes(scratch)
	return fmt.Sprintf("%s; %s, %d cores, load %s; %s, PocketBase %s, SQLite driver %s; fdatasync p50 %s p99 %s",
		commit, field("/proc/cpuinfo", "model name"), runtime.NumCPU(), loadAverage(), runtime.Version(),
		module("github.com/pocketbase/pocketbase"), module("modernc.org/sqlite"), times[0], times[1])
}

// field is the value behind a name and a colon in a file of the system; "unknown" when it is not there.
func field(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if before, after, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(before) == name {
			return strings.TrimSpace(after)
		}
	}
	return "unknown"
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

func module(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == path {
				return dependency.Version
			}
		}
	}
	return "unknown"
}

// syncTimes is how long the disk takes to make 4 KB durable, median and worst but one of a hundred.
func syncTimes(scratch string) [2]string {
	unknown := [2]string{"unknown", "unknown"}
	f, err := os.Create(filepath.Join(scratch, "sync"))
	if err != nil {
		return unknown
	}
	defer func() { _ = f.Close() }() // of no more use
	var taken []time.Duration
	for range 200 {
		began := time.Now()
		_, err := f.WriteAt(make([]byte, 4096), 0)
		if err == nil {
			err = f.Sync()
		}
		if err != nil {
			return unknown
		}
		taken = append(taken, time.Since(began))
	}
	slices.Sort(taken)
	return [2]string{taken[100].Round(time.Microsecond).String(), taken[198].Round(time.Microsecond).String()}
}
