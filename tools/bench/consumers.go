package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"time"
)

// withConsumers measures ingestion while three webhook endpoints receive every reading and alert and a client reads the change
// feed. Rounds with and without these consumers alternate on one server. The consumers run on the same machine.
func withConsumers(ctx context.Context, b built, p plan, t *table) error {
	var delivered, read atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the connection is reused
		delivered.Add(1)
	}))
	defer receiver.Close()
	candidate, err := b.with("VIGIL_OUTBOUND_DEV_ALLOWED_HOSTS="+receiver.Listener.Addr().String()).candidate(ctx, content{patients: ingestPatients})
	if err != nil {
		return err
	}
	defer candidate.stop()
	hooks, err := candidate.createWebhooks(ctx, receiver.URL, 3)
	if err != nil {
		return err
	}
	to := readings(candidate, time.Now().Add(-25*24*time.Hour))
	for _, clients := range []int{1, 8, 64} {
		l := load{clients, p.warmUp, p.length}
		var rounds [][]figures
		for n := range 2 * p.rounds {
			round := make([]figures, 2)
			for i := range round {
				which := (i + n) % 2 // 0 is with consumers
				if round[which], err = candidate.loadWithConsumers(ctx, to, l, hooks, which == 0, &read); err != nil {
					return err
				}
			}
			rounds = append(rounds, round)
		}
		one := compare("ingest, followed", l, rounds, 1, "no consumers", byThroughput, aim{.97, 1})
		one.note = fmt.Sprintf("by three webhooks and a change-feed reader; %d requests and %d changes so far, the receivers' CPU time on the same cores included", delivered.Load(), read.Load())
		t.add(one)
	}
	if delivered.Load() == 0 || read.Load() == 0 {
		return errors.New("no webhook was delivered, or no change was read")
	}
	return candidate.checkStored(to.accepted.Load())
}

// createWebhooks creates webhook endpoints for readings and alerts.
func (s *server) createWebhooks(ctx context.Context, address string, count int) (ids []string, err error) {
	body := fmt.Sprintf(`{"url":%q,"events":["observation.created","alert.raised"]}`, address)
	for range count {
		_, status, answer, err := s.request(ctx, "POST", "/api/v1/webhooks/", body)
		var made struct{ ID string }
		if err == nil {
			err = json.Unmarshal(answer, &made)
		}
		if err != nil || status != http.StatusCreated {
			return nil, fmt.Errorf("webhook answered %d: %s (%w)", status, answer, err)
		}
		ids = append(ids, made.ID)
	}
	return ids, nil
}

// loadWithConsumers runs one load with consumers or without.
func (s *server) loadWithConsumers(ctx context.Context, to *target, l load, hooks []string, on bool, read *atomic.Int64) (figures, error) {
	for _, id := range hooks {
		if _, status, answer, err := s.request(ctx, "PATCH", "/api/v1/webhooks/"+id+"/", fmt.Sprintf(`{"active":%t}`, on)); err != nil || status != http.StatusOK {
			return figures{}, fmt.Errorf("webhook answered %d: %s (%w)", status, answer, err)
		}
	}
	following, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	if on {
		go func() { ended <- s.readChanges(following, read) }()
	} else {
		ended <- nil
		time.Sleep(time.Second) // lets deliveries in flight finish
	}
	f, err := closedLoop(ctx, to, l)
	stop()
	return f, errors.Join(err, <-ended)
}

// readChanges reads the change feed like a client that keeps a copy: all available pages, then again after a second.
func (s *server) readChanges(ctx context.Context, read *atomic.Int64) error {
	for cursor := "latest"; ; {
		_, status, answer, err := s.request(context.WithoutCancel(ctx), "GET", "/api/v1/changes/?limit=1000&since="+url.QueryEscape(cursor), "")
		var page struct {
			Results []json.RawMessage
			Next    string `json:"next_cursor"`
			More    bool   `json:"has_more"`
		}
		if err == nil {
			err = json.Unmarshal(answer, &page)
		}
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("changes answered %d: %s (%w)", status, answer, err)
		}
		read.Add(int64(len(page.Results)))
		cursor = page.Next
		wait := time.Second
		if page.More {
			wait = 0
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}
