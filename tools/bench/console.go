package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// Size of the console's practice, and the load of changes while frame times are recorded.
const (
	consolePatients = 10_000
	consoleRate     = 20 // changes a second
	consoleSeconds  = 20
	consoleListed   = 40 // patients that receive readings: two pages of the list
	browserScripts  = "internal/vigiltest/browser"
)

// consoleResult is the browser script's output. Times are in milliseconds; those of a view count from the request of its page.
type consoleResult struct {
	First  []struct{ Door, Sent, Rows float64 }
	Cold   float64 // bytes until the list was shown
	Files  float64 // bytes of the console's own files, with every section opened
	Frames struct {
		Frames, Long, Tasks             int
		PerSecond, Median, P99, Longest float64
		Mutations, LongestTask          float64
	}
	// Work is the page thread's CPU time: its share, and its longest task.
	Work struct{ Busy, Longest float64 }
}

// console measures the triage list in a real browser. It renders without a GPU: rendering, serving and sending the changes
// share the machine's cores.
func console(ctx context.Context, b built, _ plan, t *table) error {
	chromium, missing := exec.LookPath("chromium")
	_, unbuilt := os.Stat("pb_public/vendor/preact.js")
	if err := errors.Join(missing, unbuilt); err != nil {
		fmt.Println("  not measured: install chromium and build the console (make web)")
		return nil
	}
	scripts, err := browserKit(ctx, b)
	if err != nil {
		return err
	}
	candidate, err := b.candidate(ctx, content{patients: consolePatients, readings: 30 * consolePatients})
	if err != nil {
		return err
	}
	defer candidate.stop()
	if err := errors.Join(candidate.warm(ctx), candidate.lowerScores()); err != nil {
		return err
	}
	const rounds = 5
	input, err := json.Marshal(map[string]any{
		"email": adminEmail, "password": adminPassword, "secret": b.secret, "rounds": rounds, "rate": consoleRate, "seconds": consoleSeconds,
		"patients": candidate.patients[:consoleListed], "devices": candidate.devices[:consoleListed],
	})
	if err != nil {
		return err
	}
	node := exec.CommandContext(ctx, "node", "console_bench.mjs")
	node.Dir, node.Stderr = scripts, os.Stderr
	node.Env = append(os.Environ(), "VIGIL_URL=http://"+candidate.addr, "CHROMIUM="+chromium, "PICTURES="+b.scratch, "INPUT="+string(input))
	out, err := node.Output()
	if err != nil {
		return fmt.Errorf("the browser: %w", err)
	}
	var seen consoleResult
	if err := json.Unmarshal(out, &seen); err != nil {
		return fmt.Errorf("the browser answered %q: %w", out, err)
	}
	seen.addRows(t)
	return nil
}

// addRows adds the rows. The first view is the cold one: the browser's cache holds no file of the console.
func (s consoleResult) addRows(t *table) {
	var later []time.Duration
	for _, view := range s.First[1:] {
		later = append(later, since(view.Sent, view.Rows))
	}
	slices.Sort(later)
	first := s.First[0]
	note := fmt.Sprintf("%d patients; the sign-in page was shown after %.0f ms", consolePatients, first.Door)
	t.add(row{path: "console, list after sign-in, cold", value: since(first.Sent, first.Rows).Seconds(), unit: "s", aim: aim{1, .5}, note: note})
	t.add(row{path: "console, list after sign-in, again", value: later[len(later)/2].Seconds(), unit: "s", aim: aim{1, .5}, note: fmt.Sprintf("median of %d", len(later))})
	f := s.Frames
	t.add(row{
		path: "console, longest frame", value: f.Longest, unit: "ms", aim: aim{50, 34},
		note: fmt.Sprintf("%d changes at %.1f a second, %.0f mutations, %d frames: median %.1f ms, p99 %.1f ms, %d over 50 ms; %d long tasks, the longest %.0f ms",
			consoleRate*consoleSeconds, f.PerSecond, f.Mutations, f.Frames, f.Median, f.P99, f.Long, f.Tasks, f.LongestTask),
	})
	t.add(row{
		path: "console, longest work for a frame", value: s.Work.Longest, unit: "ms", aim: aim{50, 16},
		note: fmt.Sprintf("CPU time of the page's thread; busy %.0f %% of the time", 100*s.Work.Busy),
	})
	t.add(row{path: "console, transferred until the list", value: s.Cold / 1000, unit: "kB", aim: aim{400, 200}})
	t.add(row{path: "console, all its files", value: s.Files / 1000, unit: "kB", aim: aim{400, 200}, note: "every section opened"})
}

// lowerScores lowers every patient's score, so that the patients that receive readings are first in the list.
func (s *server) lowerScores() error {
	db := sqlite.File(filepath.Join(s.dir, "data.db"), "busy_timeout(10000)")
	defer func() { _ = db.Close() }() // the update is committed
	_, err := db.NewQuery(`UPDATE triage_scores SET risk_score = risk_score % 50 + 1, risk_level = 'normal'`).Execute()
	return err
}

func since(from, to float64) time.Duration {
	return time.Duration((to - from) * float64(time.Millisecond))
}

// browserKit copies the browser scripts to the scratch folder and installs their one dependency.
func browserKit(ctx context.Context, b built) (string, error) {
	target := filepath.Join(b.scratch, "browser")
	if err := os.CopyFS(target, os.DirFS(browserScripts)); err != nil {
		return "", err
	}
	install := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--prefer-offline")
	install.Dir = target
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return target, nil
}
