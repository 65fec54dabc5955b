// Command bench compares Vigil with a plain PocketBase of the same version. Load alternates between the servers within one
// run, so both sides are measured in the same minutes on the same machine. Vigil is the release binary with durable
// settings. The plain server has one collection of the same shape and no consequences of a reading: no alert, score, FHIR or
// audit. It is measured twice, with its defaults ("plain NORMAL") and as durable as Vigil ("plain FULL").
//
//	vigil-bench                 everything, about a quarter of an hour
//	vigil-bench -quick          under three minutes
//	vigil-bench -paths ingest   the paths with that prefix
//	vigil-bench -against ./old  compare with an older binary
//	vigil-bench -peers          compare with a FHIR server (HAPI FHIR JPA; needs Java 17 and Maven)
//
// It prints a table and, with -out, writes it as CSV with a chart. Only the ratios are comparable across machines. It fails
// when the database does not hold exactly the readings that were acknowledged.
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

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// plan holds the values of the flags.
type plan struct {
	rounds   int
	warmUp   time.Duration
	length   time.Duration // of one measurement
	patients int
	readings int // stored before the reading paths are measured
	entries  int // billed before the reports are measured
	only     []string
	out      string
	older    string        // path of an older binary to compare with
	peers    bool          // compare with a FHIR server
	delay    time.Duration // added to each commit on both sides in the path "slow disk"
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "plain":
			exit(servePlain(os.Args[2:]))
		case "listen":
			exit(runSubscribers(os.Args[2:]))
		case "sqlite":
			fmt.Println(sqliteHere())
			exit(nil)
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
	flag.StringVar(&p.out, "out", "", "folder for bench.csv and bench.svg, or bench-peers.csv and bench-peers.svg")
	flag.StringVar(&p.older, "against", "", "an older binary of Vigil: the two are pressed in turns, and nothing else is measured")
	flag.BoolVar(&p.peers, "peers", false, "beside a FHIR server, and nothing else is measured")
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

// measure runs every selected path, prints rows as they are measured, and then the table. A failed path does not stop the
// others.
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
	chosen, name := pathsOf(p.only), "bench"
	switch {
	case p.older != "":
		chosen = []path{{"paired", compareVersions}}
	case p.peers:
		chosen, name = []path{{"peers", compareFHIRServer}}, "bench-peers"
	default:
		t.remark("plain PocketBase as it comes: %s", sqliteOf(ctx, b.plainBinary))
	}
	for _, path := range chosen {
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
	if ctx.Err() != nil || p.out == "" || len(t.rows) == 0 {
		return errors.Join(err, ctx.Err())
	}
	file := filepath.Join(p.out, name)
	return errors.Join(err, t.writeCSV(file+".csv", print), t.writeChart(file+".svg"))
}

// fingerprint describes the commit, machine and software of a run.
func fingerprint(scratch string) string {
	commit := "unknown commit"
	if out, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil { //nolint:noctx // a moment
		commit = strings.TrimSpace(string(out))
	}
	times := syncTimes(scratch)
	return fmt.Sprintf("%s; %s, %d cores, load %s; %s, PocketBase %s, %s; fdatasync p50 %s p99 %s",
		commit, field("/proc/cpuinfo", "model name"), runtime.NumCPU(), loadAverage(), runtime.Version(),
		module("github.com/pocketbase/pocketbase"), sqliteHere(), times[0], times[1])
}

// sqliteHere returns the SQLite version of this program, which the Vigil that it builds shares.
func sqliteHere() string {
	db := sqlite.File(":memory:", "query_only(ON)")
	defer func() { _ = db.Close() }() // in memory
	version := "of an unknown version"
	_ = db.NewQuery(`SELECT sqlite_version()`).Row(&version) // the default text stays on failure
	return fmt.Sprintf("SQLite %s %s (%s %s)", version, driver, driverModule, module(driverModule))
}

// field returns the value of a "name: value" line in a system file, or "unknown".
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

// syncTimes measures how long the disk takes to make 4 KB durable: p50 and p99 of 200 writes.
func syncTimes(scratch string) [2]string {
	unknown := [2]string{"unknown", "unknown"}
	f, err := os.Create(filepath.Join(scratch, "sync"))
	if err != nil {
		return unknown
	}
	defer func() { _ = f.Close() }() // removed with the scratch folder
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

// path is one measurement; it adds rows to the table.
type path struct {
	name    string
	measure func(ctx context.Context, b built, p plan, t *table) error
}

// paths are all measurements, in order.
var paths = []path{
	{"start", start},
	{"ingest", ingest},
	{"slow disk", ingestSlowDisk},
	{"webhook", webhook},
	{"practice", practice},
	{"delivery", delivery},
	{"live", live},
	{"followed", withConsumers},
	{"FHIR search", searchFHIR},
	{"FHIR export", exportFHIR},
	{"console", console},
}

func pathsOf(only []string) []path {
	return slices.DeleteFunc(slices.Clone(paths), func(one path) bool {
		return len(only) > 0 && !slices.ContainsFunc(only, func(begin string) bool { return strings.HasPrefix(one.name, begin) })
	})
}

// alternate runs the load on each target in alternating order, so that a slow minute of the machine affects all of them. It
// returns one slice of figures per round, in the order of the targets.
func alternate(ctx context.Context, p plan, l load, targets ...*target) ([][]figures, error) {
	var rounds [][]figures
	for n := range p.rounds {
		round := make([]figures, len(targets))
		for i := range targets {
			which := i
			if n%2 == 1 {
				which = len(targets) - 1 - i
			}
			worked := targets[which].cpuPerRequest()
			var err error
			if round[which], err = closedLoop(ctx, targets[which], l); err != nil {
				return nil, err
			}
			round[which].cpu = worked()
		}
		rounds = append(rounds, round)
	}
	return rounds, nil
}

// compare returns the row of a race's first target against another one: the figures of the median round, and the median of
// the rounds' ratios.
func compare(name string, l load, rounds [][]figures, other int, against string, ratio func(ours, theirs figures) float64, a aim) row {
	ours, theirs, ratios := []figures{}, []figures{}, []float64{}
	for _, round := range rounds {
		ours, theirs, ratios = append(ours, round[0]), append(theirs, round[other]), append(ratios, ratio(round[0], round[other]))
	}
	slices.Sort(ratios)
	return row{
		path: name, clients: l.clients, figures: median(ours), against: against, other: median(theirs),
		value: ratios[len(ratios)/2], unit: "×", aim: a,
	}
}

// byThroughput is the ratio of the throughputs.
func byThroughput(ours, theirs figures) float64 { return ours.perSecond / max(theirs.perSecond, 1) }

// byLatency is the ratio of the median latencies, theirs to ours.
func byLatency(ours, theirs figures) float64 { return float64(theirs.p50) / float64(max(ours.p50, 1)) }

func median(all []figures) figures {
	all = slices.SortedFunc(slices.Values(all), func(a, b figures) int { return int(a.perSecond - b.perSecond) })
	return all[len(all)/2]
}

// start measures the time until the first healthy answer, with patients in the folder and after a kill.
func start(ctx context.Context, b built, p plan, t *table) error {
	patients := min(p.patients, 10_000)
	candidate, err := b.candidate(ctx, content{patients: patients})
	if err != nil {
		return err
	}
	defer func() { candidate.stop() }()
	var taken []time.Duration
	for range 2*p.rounds + 1 {
		candidate.kill()
		dir := candidate.dir
		if candidate, err = b.start(ctx, dir); err != nil {
			return err
		}
		taken = append(taken, candidate.ready)
	}
	slices.Sort(taken)
	ready := taken[len(taken)/2]
	plain, err := b.plain(ctx, false, patients, 1)
	if err != nil {
		return err
	}
	plain.stop()
	t.add(row{
		path: "health after start", figures: figures{p50: ready, max: taken[len(taken)-1]}, value: float64(ready.Microseconds()) / 1000, unit: "ms",
		aim: aim{1000, 50}, note: fmt.Sprintf("%d patients, each start after a kill; %.0f MB resident", patients, candidate.memory()),
	})
	return nil
}
