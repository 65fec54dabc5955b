package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// path is one thing to measure; it adds its rows to the table.
type path struct {
	name    string
	measure func(ctx context.Context, b built, p plan, t *table) error
}

// paths is everything the command measures, in order.
var paths = []path{
	{"start", start},
	{"ingest", ingest},
	{"slow disk", ingestSlowly},
	{"webhook", webhook},
	{"practice", practice},
	{"delivery", delivery},
	{"live", live},
	{"console", console},
}

func pathsOf(only []string) []path {
	return slices.DeleteFunc(slices.Clone(paths), func(one path) bool {
		return len(only) > 0 && !slices.ContainsFunc(only, func(begin string) bool { return strings.HasPrefix(one.name, begin) })
	})
}

// race presses the targets in turns, forwards and backwards, so that a minute in which the machine is slow counts against
// all of them. The result is one row of figures per round, in the order of the targets.
func race(ctx context.Context, p plan, l load, targets ...*target) ([][]figures, error) {
	var rounds [][]figures
	for n := range p.rounds {
		round := make([]figures, len(targets))
		for i := range targets {
			which := i
			if n%2 == 1 {
				which = len(targets) - 1 - i
			}
			var err error
			if round[which], err = press(ctx, targets[which], l); err != nil {
				return nil, err
			}
		}
		rounds = append(rounds, round)
	}
	return rounds, nil
}

// compare makes the row of the first target of a race beside another one: the figures of the median round, and the median of
// the ratios of each round.
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

// byThroughput is how many times as much was done.
func byThroughput(ours, theirs figures) float64 { return ours.perSecond / max(theirs.perSecond, 1) }

// byLatency is how many times as long the other's median answer took.
func byLatency(ours, theirs figures) float64 { return float64(theirs.p50) / float64(max(ours.p50, 1)) }

func median(all []figures) figures {
	all = slices.SortedFunc(slices.Values(all), func(a, b figures) int { return int(a.perSecond - b.perSecond) })
	return all[len(all)/2]
}

// start measures the time to the first answer, on an empty folder and after a kill with patients in it.
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
