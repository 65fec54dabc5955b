package emr_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

func unconditional(cache time.Duration) func(*emr.Options) {
	return func(o *emr.Options) { o.ConditionalCreate, o.SearchCache = false, cache }
}

// cacheSearches makes an EMR cache search results for a time.
func cacheSearches(keeps time.Duration, stubborn bool) func(*sandbox.EMROptions) {
	return func(o *sandbox.EMROptions) { o.SearchCache, o.StubbornCache = keeps, stubborn }
}

// sendUntilDone sends as the worker would: it searches first after an unknown outcome, and waits as long as required.
func (st *sandboxTransport) sendUntilDone(t *testing.T, client *emr.Client, sent bool) {
	t.Helper()
	for delivery := range 20 {
		if sent || delivery > 0 {
			_, found, err := client.FindObservation(t.Context(), observationID, []byte(observationResource))
			if found {
				return
			}
			if e := asError(t, err); e != nil {
				time.Sleep(max(e.TrustSearchAfter, time.Second))
				continue
			}
		}
		_, e := st.send(t, client)
		if e == nil {
			return
		}
		if !e.Ambiguous {
			t.Fatalf("%v", e)
		}
		time.Sleep(max(e.TrustSearchAfter, time.Second))
	}
	t.Fatal("never done")
}

// With an EMR that answers from its cache, and any of the first requests or responses lost, a reading is stored once without conditional create.
func TestSearchCacheStoresNothingTwice(t *testing.T) {
	const first = 5 // requests that may fail, each in three ways
	for keeps, stubborn := range map[time.Duration]bool{time.Minute: true, 5 * time.Second: true, 10 * time.Minute: true, 61 * time.Second: false} {
		for fate := range 243 {
			synctest.Test(t, func(t *testing.T) {
				b := newSandboxTransport(t, cacheSearches(keeps, stubborn))
				b.failing = []int{0, 1, 2, 3, 4}
				b.fail = func(next http.Handler, w http.ResponseWriter, r *http.Request) {
					rest := fate
					for range len(b.requests) - 1 {
						rest /= 3
					}
					[]http.HandlerFunc{
						next.ServeHTTP,
						func(w http.ResponseWriter, r *http.Request) { faultModes["500, not done"](next, w, r) },
						func(w http.ResponseWriter, r *http.Request) { faultModes["500, done"](next, w, r) },
					}[rest%3](w, r)
				}
				time.Sleep(2 * keeps)
				b.sendUntilDone(t, b.client(t, unconditional(keeps)), false)
				if s := b.Stats(); s.Observations != 1 {
					t.Errorf("kept for %s, stubborn %t, fate %d of the first %d: stored %d times: %v", keeps, stubborn, fate, first, s.Observations, b.requests)
				}
			})
		}
	}
}

// A failed search came after the request: what the EMR cached of it is current, and the delivery continues within its quick retries.
func TestSearchCacheAfterFailedSearch(t *testing.T) {
	for name, how := range faultModes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newSandboxTransport(t, cacheSearches(time.Minute, true))
				b.failing, b.fail = []int{0, 1}, how
				_, e := b.send(t, b.client(t, unconditional(time.Minute)))
				if took := time.Since(b.began); e != nil || took > 7*time.Second {
					t.Errorf("%v after %s: %v", e, took, b.requests)
				}
				if s := b.Stats(); s.Observations != 1 {
					t.Errorf("stored %d times: %v", s.Observations, b.requests)
				}
			})
		})
	}
}

// A slow EMR stores a reading once: it may finish a request long after the client and the gateway stopped waiting.
func TestRequestCompletesAfterTimeout(t *testing.T) {
	ends := map[string]func(w http.ResponseWriter, r *http.Request){
		"silence":           func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); panic(http.ErrAbortHandler) },
		"a gateway's 504":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGatewayTimeout) },
		"a gateway's 524":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(524) },
		"cut off by a stop": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); panic(http.ErrAbortHandler) },
	}
	for name, end := range ends {
		for _, cache := range []time.Duration{0, 5 * time.Second, time.Minute, 10 * time.Minute} {
			for _, late := range []time.Duration{0, time.Second, 7 * time.Second, 30 * time.Second, 59 * time.Second} {
				for sends := range 2 { // that are slow before one is quick
					synctest.Test(t, func(t *testing.T) {
						b := newSandboxTransport(t, cacheSearches(cache, true))
						done, posts := make(chan struct{}, 2), 0
						b.failing = []int{0, 1, 2, 3, 4}
						b.fail = func(next http.Handler, w http.ResponseWriter, r *http.Request) {
							if r.Method != http.MethodPost || posts > sends {
								next.ServeHTTP(w, r)
								return
							}
							posts++
							body, _ := io.ReadAll(r.Body)
							arrived, request := r.Context(), r.Clone(context.Background())
							request.Body = io.NopCloser(bytes.NewReader(body))
							go func() {
								if !strings.HasPrefix(name, "a gateway's") {
									<-arrived.Done()
								}
								time.Sleep(late)
								next.ServeHTTP(httptest.NewRecorder(), request)
								done <- struct{}{}
							}()
							end(w, r)
						}
						time.Sleep(2 * cache)
						client := b.client(t, unconditional(cache))
						if name == "cut off by a stop" {
							ctx, cut := context.WithTimeout(t.Context(), time.Second)
							_, err := client.CreateObservation(ctx, observationID, []byte(observationJSON), requestID)
							cut()
							if e := asError(t, err); e == nil || !e.Ambiguous {
								t.Errorf("aborted: %v", e)
							}
							client = b.client(t, unconditional(cache)) // of the next process
						}
						b.sendUntilDone(t, client, name == "cut off by a stop")
						<-done
						synctest.Wait()
						if s := b.Stats(); s.Observations != 1 {
							t.Errorf("%s, done %s later, searches kept for %s: stored %d times: %v", name, late, cache, s.Observations, b.requests)
						}
					})
				}
			}
		}
	}
}

// The reported case: the first request is lost, the search finds nothing and is cached, the second arrives and its response is lost.
func TestSearchCacheReproduction(t *testing.T) {
	arrive := faultModes["500, done"]
	lose := faultModes["500, not done"]
	for name, test := range map[string]struct {
		stubborn bool
		took     time.Duration // of the first delivery
		found    bool          // by the second search, in the first delivery
		wait     time.Duration
	}{
		"no-cache": {false, 3 * time.Second, true, 0},
		"an EMR that answers from its cache anyhow": {true, 3 * time.Second, false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newSandboxTransport(t, cacheSearches(time.Minute, test.stubborn))
				b.failing = []int{0, 2}
				b.fail = func(next http.Handler, w http.ResponseWriter, r *http.Request) {
					if len(b.requests) == 1 {
						lose(next, w, r)
						return
					}
					arrive(next, w, r)
				}
				client := b.client(t, unconditional(time.Minute))
				began := time.Now()
				created, e := b.send(t, client)
				if took := time.Since(began); took != test.took || !slices.Equal(b.requests, []string{"POST", "GET", "POST", "GET"}) {
					t.Errorf("%v after %s", b.requests, took)
				}
				if test.found {
					if e != nil || !created.AlreadyThere || created.EMRID == "" {
						t.Errorf("%+v %v", created, e)
					}
					return
				}
				if e == nil || !e.Ambiguous || e.TrustSearchAfter != test.wait || e.Status != 500 || e.Message != "EMR unavailable (500)" {
					t.Fatalf("%+v", e)
				}
				for _, wait := range []time.Duration{30 * time.Second, 59 * time.Second, time.Minute} { // each search starts the wait again
					time.Sleep(wait)
					id, found, err := client.FindObservation(t.Context(), observationID, []byte(observationResource))
					if e := asError(t, err); wait < time.Minute && !found && (e == nil || e.TrustSearchAfter != time.Minute || e.Class() != emr.ClassRequest || e.Message != "EMR search may be out of date") {
						t.Errorf("after %s: %q, %v, %+v", wait, id, found, e)
					}
					if wait == time.Minute && (!found || id == "") {
						t.Errorf("not found after all: %v", err)
					}
				}
				if s := b.Stats(); s.Observations != 1 {
					t.Errorf("stored %d times", s.Observations)
				}
			})
		})
	}
}

// A killed process has searched, too: its successor trusts "not found" only after a minute.
func TestSearchCacheAfterRestart(t *testing.T) {
	for _, alive := range []time.Duration{0, 59 * time.Second, 60 * time.Second, time.Hour} {
		t.Run(alive.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newSandboxTransport(t, cacheSearches(time.Minute, true))
				before := b.client(t, unconditional(time.Minute))
				time.Sleep(time.Hour)
				if _, found, err := before.FindObservation(t.Context(), observationID, []byte(observationResource)); found || err != nil {
					t.Fatalf("%v %v", found, err)
				}
				// The search found nothing; the next request arrives, and its response is lost.
				b.failing, b.fail = []int{1}, faultModes["500, done"]
				_, _ = b.send(t, b.client(t, func(o *emr.Options) { o.QuickRetryDelays = []time.Duration{} }))
				after := b.client(t, unconditional(time.Minute))
				time.Sleep(alive)
				_, found, err := after.FindObservation(t.Context(), observationID, []byte(observationResource))
				e := asError(t, err)
				if alive < time.Minute != (e != nil && e.TrustSearchAfter == time.Minute) || alive >= time.Minute != found {
					t.Errorf("found %v, %+v", found, e)
				}
				if s := b.Stats(); s.Observations != 1 {
					t.Errorf("stored %d times", s.Observations)
				}
			})
		})
	}
}

// Callers that need a certain answer get no "not found" from a cache; callers that send conditionally need not wait.
func TestCallersThatWaitForSearchCache(t *testing.T) {
	for _, conditional := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newSandboxTransport(t)
			client := b.client(t, unconditional(time.Minute), func(o *emr.Options) { o.ConditionalCreate = conditional })
			_, _, err := client.FindObservation(t.Context(), observationID, []byte(observationResource))
			if waits := err != nil; waits == conditional {
				t.Errorf("conditional %t: %v", conditional, err)
			}
			_, _, err = client.LookUpObservation(t.Context(), observationID, []byte(observationResource))
			if e := asError(t, err); e == nil || e.TrustSearchAfter != time.Minute {
				t.Errorf("conditional %t: %v", conditional, err)
			}
			time.Sleep(time.Minute)
			if _, found, err := client.LookUpObservation(t.Context(), observationID, []byte(observationResource)); err != nil || found {
				t.Errorf("%v %v", found, err)
			}
		})
	}
}

// Outdated searches are evicted.
func TestSearchesAreEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, replyToPosts(), unconditional(time.Minute))
		for n := range 5000 {
			_, _, _ = client.FindObservation(t.Context(), fmt.Sprint(n), []byte(observationResource))
			time.Sleep(time.Second)
		}
		if kept := emr.CachedSearches(client); kept > 1100 {
			t.Errorf("%d are kept", kept)
		}
	})
}

// Searches, and reads before an update, send Cache-Control: no-cache.
func TestSearchesBypassCache(t *testing.T) {
	fake := &fakeEMR{replies: map[string][]reply{"GET": {{status: 200, body: bundle()}}, "POST": {{status: 503}}}}
	client := newClient(t, fake, func(o *emr.Options) { o.QuickRetryDelays = []time.Duration{1} })
	_, _ = deliver(t, client)
	_, _, _ = client.FindObservation(t.Context(), observationID, []byte(observationResource))
	_, _, _ = client.LookUpObservation(t.Context(), observationID, []byte(observationResource))
	_, _ = client.UpdateObservation(t.Context(), copyID, []byte(corrected), requestID, true)
	searches := 0
	for _, h := range fake.requests("fhir") {
		want := ""
		if h.method == http.MethodGet {
			want = "no-cache"
			searches++
		}
		if got := h.header.Get("Cache-Control"); got != want {
			t.Errorf("%s %s asks for %q", h.method, h.url, got)
		}
	}
	if searches != 4 {
		t.Errorf("%d searches", searches)
	}
}

// All calls of one delivery share its three quick retries.
func TestDeliverySharesQuickRetries(t *testing.T) {
	for failures := range 5 {
		synctest.Test(t, func(t *testing.T) {
			b := newSandboxTransport(t)
			b.fail = func(_ http.Handler, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }
			client, ctx := b.client(t), emr.WithSharedRetries(t.Context())
			for n := range failures {
				b.failing = append(b.failing, n)
			}
			_, _, err := client.FindObservation(ctx, observationID, []byte(observationResource))
			if (err != nil) != (failures == 4) {
				t.Fatalf("after %d failures: %v", failures, err)
			}
			if err != nil {
				return
			}
			b.fail = func(_ http.Handler, w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					w.WriteHeader(500)
					return
				}
				b.ServeHTTP(w, r)
			}
			for n := failures + 1; n < 20; n++ {
				b.failing = append(b.failing, n)
			}
			before := len(b.requests)
			_, err = client.CreateObservation(ctx, observationID, []byte(observationJSON), requestID)
			posts := 0
			for _, method := range b.requests[before:] {
				if method == http.MethodPost {
					posts++
				}
			}
			if e := asError(t, err); e == nil || posts != 4-failures {
				t.Errorf("after %d retries of the search %d requests", failures, posts)
			}
		})
	}
}

// Calls outside a delivery have retries of their own.
func TestCallsDoNotShareQuickRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, replyToPosts(reply{status: 500}), quickRetries)
		for range 2 {
			_, e := deliver(t, client)
			if e == nil || len(e.Attempts) != 4 {
				t.Errorf("%+v", e)
			}
		}
		_, err := client.CreateObservation(context.Background(), observationID, []byte(observationResource), requestID)
		if e := asError(t, err); len(e.Attempts) != 4 {
			t.Errorf("%+v", e)
		}
	})
}
