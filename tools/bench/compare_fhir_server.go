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
	// peerUncached is the peer without its search cache of one minute. Vigil's answers are always current.
	peerUncached = "HAPI FHIR, current"
	// peerStored is the number of readings that both sides store before the measurement, spread evenly over peerPatients.
	peerStored, peerPatients = 8_000, 400

	searchPath = "/Observation?"
	vigilBase  = "/fhir/R4"
	peerBase   = "/fhir"
	vigilList  = "/api/v1/ingestion/observations/?page_size=20"
)

// peerBench holds Vigil and a FHIR server, which start with the same patients and readings.
type peerBench struct {
	built
	plan
	*table
	ours         *server
	theirs       *fhirServer
	writeTargets []*target // ours and theirs
	emptySizes   []int64   // size of each folder before the first reading
}

// compareFHIRServer compares Vigil with HAPI FHIR JPA in its default configuration, on H2 in a file.
func compareFHIRServer(ctx context.Context, b built, p plan, t *table) error {
	folder, err := os.MkdirTemp(b.scratch, "hapi-*")
	if err != nil {
		return err
	}
	kit, err := hapi.Assemble(ctx, folder)
	if why, missing := errors.AsType[hapi.Unavailable](err); missing {
		fmt.Println("  not measured; install what is missing:", why)
		return nil
	}
	if err != nil {
		return err
	}
	guarantees(t, kit)
	p.readings = max(min(p.readings, peerStored)/peerPatients, 1) * peerPatients
	m := &peerBench{built: b, plan: p, table: t}
	defer func() { m.ours.stop() }()
	if m.ours, err = b.candidate(ctx, content{patients: peerPatients}); err != nil {
		return err
	}
	began := time.Now()
	if m.theirs, err = newFHIRServer(ctx, kit, folder); err != nil {
		return err
	}
	fmt.Printf("  %s, with only patients stored, answers after %s\n", peer, time.Since(began).Round(100*time.Millisecond))
	defer func() { m.theirs.Kill() }() // its database is removed with the folder
	for _, part := range []func(context.Context) error{m.fill, m.read, m.write, m.finish} {
		if m.ours.token, err = m.ours.signIn(ctx); err == nil { // valid for 15 minutes
			err = part(ctx)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// guarantees states what each side does for its figures, so that readers do not compare unequal work.
func guarantees(t *table, kit hapi.Kit) {
	t.remark("Vigil: a write is the whole pipeline (access, checks, alert, score, days, counts, transmission, audit trail), answered after its commit was flushed to disk (synchronous FULL); every answer is current; requests are authenticated")
	t.remark("%s %s with its defaults, JPA on Java %s with a heap of at most %s: H2 %s in a file with its defaults, which writes a commit to the file up to half a second after the answer, without a flush; "+
		"references are checked, resources are not validated; requests are not authenticated; a search may be answered from a cache of one minute, except in rows marked \"current\". No PostgreSQL",
		peer, kit.Version("hapi-fhir-jpaserver-base"), kit.Java, peerHeap, kit.Version("h2"))
}

// fill stores the first readings through the measured API, which also warms up the JVM.
func (m *peerBench) fill(ctx context.Context) error {
	if err := m.recordEmptySizes(ctx); err != nil {
		return err
	}
	began := time.Now().Add(-25 * 24 * time.Hour)
	m.writeTargets = []*target{readings(m.ours, began), m.theirs.observations(began)}
	for i, name := range []string{"Vigil", peer} {
		began := time.Now()
		if err := sendCount(ctx, m.writeTargets[i], 8, m.readings); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("  %s stored %d readings in %s\n", name, m.readings, time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

// recordEmptySizes records the folder sizes with schema and patients. Vigil is stopped first, so that its write-ahead log is not
// counted; the peer keeps running, because its start takes long.
func (m *peerBench) recordEmptySizes(ctx context.Context) error {
	m.ours.end()
	for _, dir := range []string{m.ours.dir, m.theirs.dir} {
		size, err := folderSize(dir)
		if err != nil {
			return err
		}
		m.emptySizes = append(m.emptySizes, size)
	}
	again, err := m.start(ctx, m.ours.dir)
	if err == nil {
		again.people, again.token, m.ours = m.ours.people, m.ours.token, again
	}
	return err
}

// write compares storing readings: Vigil runs its whole pipeline, the peer stores the Observation that Vigil would deliver.
func (m *peerBench) write(ctx context.Context) error {
	for _, clients := range []int{1, 8, 64} {
		l := load{clients, m.warmUp, m.length}
		rounds, err := alternate(ctx, m.plan, l, m.writeTargets...)
		if err != nil {
			return err
		}
		m.add(addCPUNote(compare("write", l, rounds, 1, peer, byThroughput, aim{})))
	}
	return nil
}

// addCPUNote adds the CPU time per request to the note.
func addCPUNote(r row) row {
	if r.cpu > 0 && r.other.cpu > 0 {
		r.note = fmt.Sprintf("processor time each %s ms, its %s ms: %.1f ×", formatMS(r.cpu), formatMS(r.other.cpu), float64(r.other.cpu)/float64(r.cpu))
	}
	return r
}

// question is a FHIR search and the equivalent request of Vigil's list.
type question struct {
	name, search string
	ofPatient    bool
	total        bool
}

var questions = []question{
	{name: "a patient's last twenty", search: "_sort=-date&_count=20", ofPatient: true},
	{name: "newest twenty with total", search: "_sort=-date&_count=20&_total=accurate", total: true},
}

// read compares Vigil's FHIR interface, its list, and the peer with and without its search cache.
func (m *peerBench) read(ctx context.Context) error {
	const facade, list, theirs, current = 0, 1, 2, 3
	for _, q := range questions {
		targets := m.targets(q)
		for _, to := range targets {
			if err := q.check(ctx, to, m.readings); err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
		}
		for _, clients := range []int{1, 8} {
			l := load{clients, m.warmUp / 2, m.length / 2}
			rounds, err := alternate(ctx, m.plan, l, targets...)
			if err != nil {
				return err
			}
			for _, r := range []struct {
				name      string
				ours, its int
				against   string
			}{{q.name, facade, theirs, peer}, {q.name, facade, current, peerUncached}, {q.name + ", Vigil's list", list, theirs, peer}} {
				m.add(addCPUNote(compare(r.name, l, selectTargets(rounds, r.ours, r.its), 1, r.against, byThroughput, aim{})))
			}
		}
	}
	return nil
}

// selectTargets selects two targets of a race.
func selectTargets(rounds [][]figures, ours, other int) (two [][]figures) {
	for _, round := range rounds {
		two = append(two, []figures{round[ours], round[other]})
	}
	return two
}

// peerRatio returns a row for a quantity of which less is better: the peer's value divided by ours.
func peerRatio(name string, ours, theirs float64, note string) row {
	return row{path: name, against: peer, value: theirs / ours, unit: "×", note: note}
}

// finish compares the stored rows with the acknowledged ones, and the memory and, after both have stopped, the disk used.
func (m *peerBench) finish(ctx context.Context) error {
	ours, theirs := m.ours.memory(), memoryOf(m.theirs.PID())
	m.add(peerRatio("memory", ours, theirs, fmt.Sprintf("resident at most, %.0f MB and %.0f MB", ours, theirs)))
	stored := []int64{m.writeTargets[0].accepted.Load(), m.writeTargets[1].accepted.Load()}
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
		each[i] = float64(size-m.emptySizes[i]) / float64(stored[i])
	}
	m.add(peerRatio("disk per observation", each[0], each[1], fmt.Sprintf("the growth of the whole folder, stopped: %.0f B each of %d, and %.0f B each of %d; ours with alerts, days, counts, transmissions and audit trail",
		each[0], stored[0], each[1], stored[1])))
	return m.restart(ctx)
}

// restart measures the time from a start, after an orderly stop, until the newest reading is returned.
func (m *peerBench) restart(ctx context.Context) error {
	var taken [2][]time.Duration
	var ratios []float64
	for range max(m.rounds/2, 1) {
		began := time.Now()
		ours, err := m.start(ctx, m.ours.dir)
		if err != nil {
			return err
		}
		ours.people, ours.token, m.ours = m.ours.people, m.ours.token, ours
		if err := ours.awaitPath(ctx, vigilBase+newestSearch); err != nil {
			return err
		}
		mine := time.Since(began)
		m.ours.end()
		its, err := m.theirs.restart(ctx)
		if err != nil {
			return err
		}
		if err := m.theirs.checkStored(ctx, m.writeTargets[1].accepted.Load()); err != nil {
			return fmt.Errorf("count after an orderly stop: %w", err)
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
		note: fmt.Sprintf("until the newest reading is answered, after an orderly stop; %d and %d readings", m.writeTargets[0].accepted.Load(), m.writeTargets[1].accepted.Load()),
	})
	return m.ours.checkStored(m.writeTargets[0].accepted.Load())
}

// folderSize returns the total size of a folder's files.
func folderSize(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) { // deleted during the walk
			return nil
		}
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	return bytes, err
}
