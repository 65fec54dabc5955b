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

// followed measures what is left of the rate of ingestion while three webhooks are told of every reading and alert, and a reader follows the
// changes. Both are switched on and off in turns on one server; receivers and reader work on the same machine.
func followed(ctx context.Context, b built, p plan, t *table) error {
	var told, read atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the connection is used again
		told.Add(1)
	}))
	defer receiver.Close()
	candidate, err := b.with("VIGIL_OUTBOUND_DEV_ALLOWED_HOSTS="+receiver.Listener.Addr().String()).candidate(ctx, content{patients: ingestPatients})
	if err != nil {
		return err
	}
	defer candidate.stop()
	hooks, err := candidate.hook(ctx, receiver.URL, 3)
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
				which := (i + n) % 2 // 0 is followed
				if round[which], err = candidate.pressFollowed(ctx, to, l, hooks, which == 0, &read); err != nil {
					return err
				}
			}
			rounds = append(rounds, round)
		}
		one := compare("ingest, followed", l, rounds, 1, "nobody told", byThroughput, aim{.97, 1})
		one.note = fmt.Sprintf("by three webhooks and a reader of the changes; %d requests and %d changes so far, the receivers' work on the same cores included", told.Load(), read.Load())
		t.add(one)
	}
	if told.Load() == 0 || read.Load() == 0 {
		return errors.New("nobody was told of anything")
	}
	return candidate.checkStored(to.accepted.Load())
}

// hook makes webhooks for readings and alerts.
func (s *server) hook(ctx context.Context, address string, count int) (ids []string, err error) {
	body := fmt.Sprintf(`{"url":%q,"events":["observation.created","alert.raised"]}`, address)
	for range count {
		_, status, answer, err := s.once(ctx, "POST", "/api/v1/webhooks/", body)
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

// pressFollowed is one stretch of load, with followers or without.
func (s *server) pressFollowed(ctx context.Context, to *target, l load, hooks []string, on bool, read *atomic.Int64) (figures, error) {
	for _, id := range hooks {
		if _, status, answer, err := s.once(ctx, "PATCH", "/api/v1/webhooks/"+id+"/", fmt.Sprintf(`{"active":%t}`, on)); err != nil || status != http.StatusOK {
			return figures{}, fmt.Errorf("webhook answered %d: %s (%w)", status, answer, err)
		}
	}
	following, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	if on {
		go func() { ended <- s.follow(following, read) }()
	} else {
		ended <- nil
		time.Sleep(time.Second) // for what is under way
	}
	f, err := press(ctx, to, l)
	stop()
	return f, errors.Join(err, <-ended)
}

// follow reads the changes as a program does that keeps a copy: all there are, then again after a second.
func (s *server) follow(ctx context.Context, read *atomic.Int64) error {
	for cursor := "latest"; ; {
		_, status, answer, err := s.once(context.WithoutCancel(ctx), "GET", "/api/v1/changes/?limit=1000&since="+url.QueryEscape(cursor), "")
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
