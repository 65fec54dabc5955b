// Command bench measures Vigil beside a plain PocketBase of the same version, in one run and in turns, so that what is
// compared was measured in the same minutes on the same machine. It builds and starts the real binary with durable
// settings; the plain server has one collection of the same shape, and none of the consequences of a reading: no alert,
// no score, no FHIR, no audit. It is listed twice, as it comes ("plain NORMAL") and as durable as Vigil ("plain FULL").
//
//	go run ./internal/bench                 everything, about a quarter of an hour
//	go run ./internal/bench -quick          under three minutes
//	go run ./internal/bench -paths ingest   some of it
//
// It prints a table and, with -out, leaves the same as CSV with a chart. Only ratios travel between machines. It fails
// when the database does not hold exactly what was acknowledged.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
)

// plan is what the flags chose.
type plan struct {
	rounds   int
	warmUp   time.Duration
	length   time.Duration // of one measured stretch
	patients int
	readings int // stored before the reading paths are measured
	entries  int // billed before the reports are measured
	only     []string
	out      string
	delay    time.Duration // added to each commit on both sides, in the path that is about it
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "plain":
			exit(servePlain(os.Args[2:]))
		case "listen":
			exit(listen(os.Args[2:]))
		}
	}
	p := plan{warmUp: time.Second}
	quick := flag.Bool("quick", false, "one short round of each path")
	paths := flag.String("paths", "", "comma-separated beginnings of path names; empty = all")
	flag.IntVar(&p.rounds, "rounds", 3, "alternated rounds; the median counts")
	flag.DurationVar(&p.length, "for", 3*time.Second, "length of one measured stretch")
	flag.IntVar(&p.patients, "patients", 100_000, "patients of the reading paths")
	flag.IntVar(&p.readings, "readings", 10_000_000, "readings stored for the reading paths")
	flag.IntVar(&p.entries, "entries", 1_000_000, "billing entries stored for the reports")
	flag.StringVar(&p.out, "out", "", "folder for bench.csv and bench.svg")
	flag.DurationVar(&p.delay, "commit-delay", time.Millisecond, "added to each commit in the path \"slow disk\", on both sides")
	flag.Parse()
	if *quick {
		p.rounds, p.warmUp, p.length, p.patients, p.readings, p.entries = 1, 300*time.Millisecond, 1500*time.Millisecond, 10_000, 50_000, 20_000
	}
	if *paths != "" {
		p.only = strings.Split(*paths, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(measure(ctx, p))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// measure runs every chosen path, prints as it goes, and then the table. A path that fails does not take the others down.
func measure(ctx context.Context, p plan) error {
	scratch, err := os.MkdirTemp("", "vigil-bench-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // a scratch folder
	print := fingerprint(scratch)
	fmt.Println(print)
	b, err := build(ctx, scratch)
	if err != nil {
		return err
	}
	t := &table{}
	for _, path := range pathsOf(p.only) {
		if ctx.Err() != nil {
			break
		}
		fmt.Printf("%s, %s\n", time.Now().Format(time.TimeOnly), path.name)
		if failed := path.measure(ctx, b, p, t); failed != nil {
			failed = fmt.Errorf("%s: %w", path.name, failed)
			fmt.Println(" ", failed)
			err = errors.Join(err, failed)
		}
	}
	fmt.Println()
	t.print(os.Stdout)
	if ctx.Err() != nil || p.out == "" {
		return errors.Join(err, ctx.Err())
	}
	return errors.Join(err, t.writeCSV(filepath.Join(p.out, "bench.csv"), print), t.writeChart(filepath.Join(p.out, "bench.svg")))
}

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
