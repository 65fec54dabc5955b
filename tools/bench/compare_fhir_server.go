package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/e2e/hapi"
)

const (
	peer = "HAPI FHIR"
	// peerCurrent is the same when it is asked for an answer that is not up to a minute old, as all of ours are not.
	peerCurrent = "HAPI FHIR, current"
	// peerStored are the readings that both have before anything is measured, as many of each patient.
	peerStored, peerPatients = 8_000, 400

	fhirSearch  = "/Observation?"
	fhirVigil   = "/fhir/R4"
	fhirPeer    = "/fhir"
	listOfVigil = "/api/v1/ingestion/observations/?page_size=20"
)

// match is Vigil and a FHIR server, each with the same patients and, to begin with, the same readings.
type match struct {
	built
	plan
	*table
	ours   *server
	theirs *fhirServer
	writes []*target // ours and theirs
	empty  []int64   // what their folders held before the first reading
}

// peers measures Vigil beside a FHIR server as it comes: HAPI FHIR JPA, on H2 in a file.
func peers(ctx context.Context, b built, p plan, t *table) error {
	folder, err := os.MkdirTemp(b.scratch, "hapi-*")
	if err != nil {
		return err
	}
	kit, err := hapi.Assemble(ctx, folder)
	if why, missing := errors.AsType[hapi.Unavailable](err); missing {
		fmt.Println("  not measured:", why)
		return nil
	}
	if err != nil {
		return err
	}
	guarantees(t, kit)
	p.readings = max(min(p.readings, peerStored)/peerPatients, 1) * peerPatients
	m := &match{built: b, plan: p, table: t}
	defer func() { m.ours.stop() }()
	if m.ours, err = b.candidate(ctx, content{patients: peerPatients}); err != nil {
		return err
	}
	began := time.Now()
	if m.theirs, err = newFHIRServer(ctx, kit, folder); err != nil {
		return err
	}
	fmt.Printf("  %s answers, with nothing stored but patients, after %s\n", peer, time.Since(began).Round(100*time.Millisecond))
	defer func() { m.theirs.Kill() }() // its database goes with the folder
	for _, part := range []func(context.Context) error{m.fill, m.read, m.write, m.finish} {
		if m.ours.token, err = m.ours.signIn(ctx); err == nil { // good for a quarter of an hour
			err = part(ctx)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// guarantees says what each side does for its figures, so that nobody takes the one for the other.
func guarantees(t *table, kit hapi.Kit) {
	t.say("Vigil: a write is the whole pipeline (access, checks, alert, score, days, counts, transmission, audit trail), answered once its commit was flushed to the disk (synchronous FULL); every answer is current; who asks has signed in")
	t.say("%s %s as it comes, JPA on Java %s with a heap of at most %s: H2 %s in a file as it comes, which writes a commit to the file up to half a second after it was answered, and waits for no disk; "+
		"references are checked, resources are not validated; nobody signs in; a search may be answered by one of the last minute, but where it says \"current\". No PostgreSQL",
		peer, kit.Version("hapi-fhir-jpaserver-base"), kit.Java, peerHeap, kit.Version("h2"))
}

// fill brings the first readings by the way that all come. It is Java's warm-up too.
func (m *match) fill(ctx context.Context) error {
	if err := m.emptied(ctx); err != nil {
		return err
	}
	began := time.Now().Add(-25 * 24 * time.Hour)
	m.writes = []*target{readings(m.ours, began), m.theirs.observations(began)}
	for i, name := range []string{"Vigil", peer} {
		began := time.Now()
		if err := fill(ctx, m.writes[i], 8, m.readings); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("  %s stored %d readings in %s\n", name, m.readings, time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

// emptied notes what the folders hold of schema and patients: Vigil's once stopped, so that no log is counted, and the peer's as it runs, since
// its start takes long.
func (m *match) emptied(ctx context.Context) error {
	m.ours.end()
	for _, dir := range []string{m.ours.dir, m.theirs.dir} {
		size, err := folderSize(dir)
		if err != nil {
			return err
		}
		m.empty = append(m.empty, size)
	}
	again, err := m.start(ctx, m.ours.dir)
	if err == nil {
		again.people, again.token, m.ours = m.ours.people, m.ours.token, again
	}
	return err
}

// write has each store readings: here the whole pipeline, there an Observation as Vigil would deliver it.
func (m *match) write(ctx context.Context) error {
	for _, clients := range []int{1, 8, 64} {
		l := load{clients, m.warmUp, m.length}
		rounds, err := race(ctx, m.plan, l, m.writes...)
		if err != nil {
			return err
		}
		m.add(costs(compare("write", l, rounds, 1, peer, byThroughput, aim{})))
	}
	return nil
}

// costs adds what the servers' processor worked for a request.
func costs(r row) row {
	if r.work > 0 && r.other.work > 0 {
		r.note = fmt.Sprintf("processor time each %s ms, its %s ms: %.1f ×", ms(r.work), ms(r.other.work), float64(r.other.work)/float64(r.work))
	}
	return r
}

// question is a search in FHIR, and the same asked of Vigil's list.
type question struct {
	name, search string
	ofPatient    bool
	total        bool
}

var questions = []question{
	{name: "a patient's last twenty", search: "_sort=-date&_count=20", ofPatient: true},
	{name: "newest twenty with total", search: "_sort=-date&_count=20&_total=accurate", total: true},
}

// read asks for the same of Vigil's FHIR interface, of its list, and of the peer with and without its memory of the last minute.
func (m *match) read(ctx context.Context) error {
	const facade, list, theirs, current = 0, 1, 2, 3
	for _, q := range questions {
		targets := m.asked(q)
		for _, to := range targets {
			if err := q.check(ctx, to, m.readings); err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
		}
		for _, clients := range []int{1, 8} {
			l := load{clients, m.warmUp / 2, m.length / 2}
			rounds, err := race(ctx, m.plan, l, targets...)
			if err != nil {
				return err
			}
			for _, r := range []struct {
				name      string
				ours, its int
				against   string
			}{{q.name, facade, theirs, peer}, {q.name, facade, current, peerCurrent}, {q.name + ", Vigil's list", list, theirs, peer}} {
				m.add(costs(compare(r.name, l, only(rounds, r.ours, r.its), 1, r.against, byThroughput, aim{})))
			}
		}
	}
	return nil
}

// only keeps two of the targets of a race.
func only(rounds [][]figures, ours, other int) (two [][]figures) {
	for _, round := range rounds {
		two = append(two, []figures{round[ours], round[other]})
	}
	return two
}

// beside makes the row of a thing of which less is better: how many times as much the peer takes.
func beside(name string, ours, theirs float64, note string) row {
	return row{path: name, against: peer, value: theirs / ours, unit: "×", note: note}
}

// finish compares what is stored with what was acknowledged, and what it took of memory and, once both have stopped, of the disk.
func (m *match) finish(ctx context.Context) error {
	ours, theirs := m.ours.memory(), memoryOf(m.theirs.PID())
	m.add(beside("memory", ours, theirs, fmt.Sprintf("resident at most, %.0f MB and %.0f MB", ours, theirs)))
	stored := []int64{m.writes[0].accepted.Load(), m.writes[1].accepted.Load()}
	if err := errors.Join(m.ours.checkStored(stored[0]), m.theirs.checkStored(ctx, stored[1])); err != nil {
		return err
	}
	m.ours.end()
	m.theirs.Stop()
	var each [2]float64
	for i, dir := range []string{m.ours.dir, m.theirs.dir} {
		size, err := folderSize(dir)
		if err != nil {
			return err
		}
		each[i] = float64(size-m.empty[i]) / float64(stored[i])
	}
	m.add(beside("disk per observation", each[0], each[1], fmt.Sprintf("the growth of the whole folder, stopped: %.0f B each of %d, and %.0f B each of %d; ours with alerts, days, counts, transmissions and audit trail",
		each[0], stored[0], each[1], stored[1])))
	return m.restart(ctx)
}

// restart measures the time from a start, after an orderly stop, until the newest reading is answered.
func (m *match) restart(ctx context.Context) error {
	var taken [2][]time.Duration
	var ratios []float64
	for range max(m.rounds/2, 1) {
		began := time.Now()
		ours, err := m.start(ctx, m.ours.dir)
		if err != nil {
			return err
		}
		ours.people, ours.token, m.ours = m.ours.people, m.ours.token, ours
		if err := ours.answers(ctx, fhirVigil+newest); err != nil {
			return err
		}
		mine := time.Since(began)
		m.ours.end()
		its, err := m.theirs.restart(ctx)
		if err != nil {
			return err
		}
		if err := m.theirs.checkStored(ctx, m.writes[1].accepted.Load()); err != nil {
			return fmt.Errorf("after an orderly stop: %w", err)
		}
		m.theirs.Stop()
		taken[0], taken[1], ratios = append(taken[0], mine), append(taken[1], its), append(ratios, float64(its)/float64(mine))
	}
	slices.Sort(ratios)
	slices.Sort(taken[0])
	slices.Sort(taken[1])
	half := len(ratios) / 2
	m.add(row{
		path: "restart with data", figures: figures{p50: taken[0][half]}, against: peer, other: figures{p50: taken[1][half]}, value: ratios[half], unit: "×",
		note: fmt.Sprintf("until the newest reading is answered, after an orderly stop; %d and %d readings", m.writes[0].accepted.Load(), m.writes[1].accepted.Load()),
	})
	return m.ours.checkStored(m.writes[0].accepted.Load())
}

// folderSize is what the files of a folder take.
func folderSize(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) { // gone meanwhile
			return nil
		}
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	return bytes, err
}
