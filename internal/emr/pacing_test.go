package emr_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
)

func perSecond(n float64) func(*emr.Options) {
	return func(o *emr.Options) { o.RatePerSecond = n }
}

// deliverConcurrently delivers n observations at once and waits for all.
func deliverConcurrently(t *testing.T, client *emr.Client, n int) {
	t.Helper()
	var group sync.WaitGroup
	for range n {
		group.Go(func() { _, _ = deliver(t, client) })
	}
	group.Wait()
}

func TestCallsAreEvenlySpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := replyToPosts()
		deliverConcurrently(t, newClient(t, fake, perSecond(10)), 30)
		if len(fake.seen) != 31 {
			t.Fatalf("%d calls", len(fake.seen))
		}
		for i := 1; i < len(fake.seen); i++ { // the token request counts like any other
			if gap := fake.seen[i].at.Sub(fake.seen[i-1].at); gap != 100*time.Millisecond {
				t.Errorf("gap %d is %v", i, gap)
			}
		}
	})
}

func TestIdleTimeGrantsNoBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := replyToPosts()
		client := newClient(t, fake, perSecond(10))
		deliverConcurrently(t, client, 1)
		time.Sleep(time.Minute)
		start := time.Now()
		deliverConcurrently(t, client, 3)
		for i, h := range fake.seen[2:] {
			if got, want := h.at.Sub(start), time.Duration(i)*100*time.Millisecond; got != want {
				t.Errorf("call %d after %v, want %v", i, got, want)
			}
		}
	})
}

// TestNeverMoreThanTheLimitInAnySecond sends at irregular times: deliveries, searches and patient reads.
func TestNeverMoreThanTheLimitInAnySecond(t *testing.T) {
	for _, limit := range []int{10, 7, 3} {
		synctest.Test(t, func(t *testing.T) {
			fake := replyToPosts()
			client := newClient(t, fake, perSecond(float64(limit)))
			var group sync.WaitGroup
			for i := range 90 {
				group.Go(func() {
					time.Sleep(time.Duration(i*37%101) * 13 * time.Millisecond)
					switch i % 3 {
					case 0:
						_, _ = deliver(t, client)
					case 1:
						_, _ = client.ReadPatient(t.Context(), "1")
					default:
						_, _, _ = client.FindObservation(t.Context(), observationID, []byte(observationResource))
					}
				})
			}
			group.Wait()
			if len(fake.seen) < 90 {
				t.Errorf("only %d calls", len(fake.seen))
			}
			for i := limit; i < len(fake.seen); i++ {
				if span := fake.seen[i].at.Sub(fake.seen[i-limit].at); span < time.Second {
					t.Errorf("%d calls within %v", limit+1, span)
				}
			}
		})
	}
}

func TestNoPacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		deliverConcurrently(t, newClient(t, replyToPosts(), perSecond(0)), 200)
		if took := time.Since(start); took != 0 {
			t.Errorf("took %v", took)
		}
	})
}

func TestRetryAfterPausesAllCalls(t *testing.T) {
	date := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for _, test := range []struct {
		name  string
		value func() string
		pause time.Duration
	}{
		{"seconds", func() string { return "25" }, 25 * time.Second},
		{"HTTP date", func() string { return date(25 * time.Second) }, 25 * time.Second},
		{"no longer than a minute", func() string { return "3600" }, time.Minute},
		{"far beyond any number", func() string { return "4294967295" }, time.Minute},
		{"past date", func() string { return date(-time.Hour) }, 100 * time.Millisecond},
		{"none", func() string { return "" }, 100 * time.Millisecond},
		{"nonsense", func() string { return "soon" }, 100 * time.Millisecond},
		{"negative", func() string { return "-5" }, 100 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := replyToPosts(reply{status: 429, header: map[string]string{"Retry-After": test.value()}}, reply{status: 201})
				deliverConcurrently(t, newClient(t, fake, perSecond(10)), 4)
				sends := fake.requests("fhir")
				if len(sends) != 4 {
					t.Fatalf("%d sends", len(sends))
				}
				for i, want := range []time.Duration{test.pause, 100 * time.Millisecond, 100 * time.Millisecond} {
					// An HTTP date has whole seconds.
					if gap := sends[i+1].at.Sub(sends[i].at); gap > want || gap < want-time.Second || i > 0 && gap != want {
						t.Errorf("gap %d is %v, want %v", i, gap, want)
					}
				}
			})
		})
	}
}

func TestRetryAfterIsReported(t *testing.T) {
	_, e := deliver(t, newClient(t, replyToPosts(reply{status: 429, header: map[string]string{"Retry-After": "120"}})))
	if e.RetryAfter != 2*time.Minute {
		t.Errorf("retry after %v", e.RetryAfter)
	}
}

func TestTokenEndpointRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := replyToPosts()
		fake.tokens = []reply{{status: 429, header: map[string]string{"Retry-After": "7"}}}
		if _, e := deliver(t, newClient(t, fake, quickRetries)); e != nil {
			t.Fatal(e)
		}
		if gap := fake.seen[1].at.Sub(fake.seen[0].at); gap != 7*time.Second {
			t.Errorf("gap %v", gap)
		}
	})
}

func TestPacingIsOutsideTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		client := newClient(t, replyToPosts(), perSecond(0.1), func(o *emr.Options) { o.Timeout = time.Second })
		for range 5 {
			group.Go(func() {
				if _, e := deliver(t, client); e != nil {
					t.Error(e)
				}
			})
		}
		group.Wait()
	})
}

func TestCancelWhilePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := replyToPosts()
		client := newClient(t, fake, perSecond(0.1))
		deliverConcurrently(t, client, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var group sync.WaitGroup
		for range 3 { // one at the head of the queue, two behind it
			group.Go(func() {
				_, err := client.CreateObservation(ctx, observationID, []byte(observationResource), requestID)
				if e := asError(t, err); !errors.Is(err, context.DeadlineExceeded) || e.Ambiguous {
					t.Errorf("%v, ambiguous %v", err, e.Ambiguous)
				}
			})
		}
		group.Wait()
		start := time.Now()
		deliverConcurrently(t, client, 1)
		if waited := time.Since(start); waited != 9*time.Second {
			t.Errorf("those who left took turns: waited %v", waited)
		}
	})
}
