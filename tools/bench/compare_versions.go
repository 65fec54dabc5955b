package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// compareVersions compares this build with an older binary in one run. Both are filled through their own API, so that versions with
// different contracts can be compared. Rates and CPU time per request are ratios to the older one.
func compareVersions(ctx context.Context, b built, p plan, t *table) error {
	older := b
	older.vigil = p.older
	var servers []*server
	for _, side := range []built{b, older} {
		s, err := side.candidate(ctx, content{})
		defer s.stop()
		if err == nil {
			err = s.createPatients(ctx, ingestPatients)
		}
		if err != nil {
			return err
		}
		servers = append(servers, s)
	}
	ours, theirs := servers[0], servers[1]
	began := time.Now().Add(-25 * 24 * time.Hour)
	in := []*target{readings(ours, began), readings(theirs, began)}
	for _, clients := range []int{1, 8, 64, 256} {
		if err := addPair(ctx, p, t, "ingest", load{clients, p.warmUp, p.length}, in...); err != nil {
			return err
		}
	}
	for name, path := range map[string]string{
		"triage page": "/api/v1/triage/patients/", "patients": "/api/v1/patients/", "observations, newest first": "/api/v1/ingestion/observations/", "alerts": "/api/v1/alerts/",
	} {
		if err := addPair(ctx, p, t, name, load{8, p.warmUp / 2, p.length / 2}, getTarget(ours, path), getTarget(theirs, path)); err != nil {
			return err
		}
	}
	return errors.Join(ours.checkStored(in[0].accepted.Load()), theirs.checkStored(in[1].accepted.Load()))
}

// addPair adds a row with the throughput ratio and the CPU time per request, each the median of the rounds' ratios.
func addPair(ctx context.Context, p plan, t *table, name string, l load, to ...*target) error {
	p.rounds *= 2
	rounds, err := alternate(ctx, p, l, to...)
	if err != nil {
		return err
	}
	var costs []float64
	for _, round := range rounds {
		costs = append(costs, round[0].cpu.Seconds()/round[1].cpu.Seconds())
	}
	slices.Sort(costs)
	r := compare("paired: "+name, l, rounds, 1, "older", byThroughput, aim{})
	r.note = fmt.Sprintf("processor time per request %.3f × of the older", costs[len(costs)/2])
	t.add(r)
	return nil
}

// createPatients creates patients through the API.
func (s *server) createPatients(ctx context.Context, count int) error {
	for n := range count {
		body := fmt.Sprintf(`{"first_name":%q,"last_name":%q,"date_of_birth":"1950-01-02","gender":"other"}`, givenNames[n%len(givenNames)], familyNames[n%len(familyNames)])
		_, status, answer, err := s.request(ctx, "POST", "/api/v1/patients/", body)
		var made struct{ ID string }
		if err == nil {
			err = json.Unmarshal(answer, &made)
		}
		if err != nil || status != http.StatusCreated {
			return fmt.Errorf("patient answered %d: %s (%w)", status, answer, err)
		}
		s.patients = append(s.patients, made.ID)
	}
	return nil
}

// cpuTime is the process's CPU time so far.
func (s *server) cpuTime() time.Duration { return processCPU(s.cmd.Process.Pid) }

// processCPU returns a process's user and system CPU time. Source: proc_pid_stat(5).
func processCPU(process int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	const user, system, perSecond = 11, 12, 100
	fields := strings.Fields(rest)
	u, _ := strconv.Atoi(fields[user])
	k, _ := strconv.Atoi(fields[system])
	return time.Duration(u+k) * time.Second / perSecond
}
