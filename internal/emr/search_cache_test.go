package emr_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

func withoutConditions(cache time.Duration) func(*emr.Options) {
	return func(o *emr.Options) { o.ConditionalCreate, o.SearchCache = false, cache }
}

// caching is an EMR that answers a search for a minute with what it found before.
func caching(keeps time.Duration, stubborn bool) func(*sandbox.EMROptions) {
	return func(o *sandbox.EMROptions) { o.SearchCache, o.StubbornCache = keeps, stubborn }
}

// sendUntilDone sends until it is done, as the queue would: it looks first where something was sent, and waits as long as it is told to.
func (b *bubble) sendUntilDone(t *testing.T, client *emr.Client, sent bool) {
	t.Helper()
	for delivery := range 20 {
		if sent || delivery > 0 {
			_, found, err := client.FindObservation(t.Context(), observationID)
			if found {
				return
			}
			if e := asError(t, err); e != nil {
				time.Sleep(max(e.LookAgain, time.Second))
				continue
			}
		}
		_, e := b.send(t, client)
		if e == nil {
			return
		}
		if !e.Ambiguous {
			t.Fatalf("%v", e)
		}
		time.Sleep(max(e.LookAgain, time.Second))
	}
	t.Fatal("never done")
}

// An EMR that answers from its cache, and of which some requests are lost on the way there or back, has a reading once, whatever is sent to it
// without conditional create.
func TestSearchCacheStoresNothingTwice(t *testing.T) {
	const first = 5 // requests that may go wrong, each in three ways
	for keeps, stubborn := range map[time.Duration]bool{time.Minute: true, 5 * time.Second: true, 10 * time.Minute: true, 61 * time.Second: false} {
		for fate := range 243 {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, caching(keeps, stubborn))
				b.wrong = []int{0, 1, 2, 3, 4}
				b.how = func(next http.Handler, w http.ResponseWriter, r *http.Request) {
					rest := fate
					for range len(b.asked) - 1 {
						rest /= 3
					}
					[]http.HandlerFunc{
						next.ServeHTTP,
						func(w http.ResponseWriter, r *http.Request) { troubles["500, not done"](next, w, r) },
						func(w http.ResponseWriter, r *http.Request) { troubles["500, done"](next, w, r) },
					}[rest%3](w, r)
				}
				time.Sleep(2 * keeps)
				b.sendUntilDone(t, b.client(t, withoutConditions(keeps)), false)
				if s := b.Stats(); s.Observations != 1 {
					t.Errorf("kept for %s, stubborn %t, fate %d of the first %d: stored %d times: %v", keeps, stubborn, fate, first, s.Observations, b.asked)
				}
			})
		}
	}
}

// A look that failed came after the send: what the EMR may have kept of it is as good as new, and the delivery goes on within its quick retries.
func TestSearchCacheAfterALookThatFailed(t *testing.T) {
	for name, how := range troubles {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, caching(time.Minute, true))
				b.wrong, b.how = []int{0, 1}, how
				_, e := b.send(t, b.client(t, withoutConditions(time.Minute)))
				if took := time.Since(b.began); e != nil || took > 7*time.Second {
					t.Errorf("%v after %s: %v", e, took, b.asked)
				}
				if s := b.Stats(); s.Observations != 1 {
					t.Errorf("stored %d times: %v", s.Observations, b.asked)
				}
			})
		})
	}
}

// An EMR that is slow has a reading once: what nobody waits for any more, neither we nor a gateway in front of it, may be done long after.
func TestDoneAfterTheSenderGaveUp(t *testing.T) {
	ends := map[string]func(w http.ResponseWriter, r *http.Request){
		"silence":           func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); panic(http.ErrAbortHandler) },
		"a gateway's 504":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGatewayTimeout) },
		"cut off by a stop": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); panic(http.ErrAbortHandler) },
	}
	for name, end := range ends {
		for _, cache := range []time.Duration{0, 5 * time.Second, time.Minute, 10 * time.Minute} {
			for _, late := range []time.Duration{0, time.Second, 7 * time.Second, 30 * time.Second, 59 * time.Second} {
				for sends := range 2 { // that are slow before one is quick
					synctest.Test(t, func(t *testing.T) {
						b := newBubble(t, caching(cache, true))
						done, posts := make(chan struct{}, 2), 0
						b.wrong = []int{0, 1, 2, 3, 4}
						b.how = func(next http.Handler, w http.ResponseWriter, r *http.Request) {
							if r.Method != http.MethodPost || posts > sends {
								next.ServeHTTP(w, r)
								return
							}
							posts++
							body, _ := io.ReadAll(r.Body)
							arrived, request := r.Context(), r.Clone(context.Background())
							request.Body = io.NopCloser(bytes.NewReader(body))
							go func() {
								if name != "a gateway's 504" {
									<-arrived.Done()
								}
								time.Sleep(late)
								next.ServeHTTP(httptest.NewRecorder(), request)
								done <- struct{}{}
							}()
							end(w, r)
						}
						time.Sleep(2 * cache)
						client := b.client(t, withoutConditions(cache))
						if name == "cut off by a stop" {
							ctx, cut := context.WithTimeout(t.Context(), time.Second)
							_, err := client.CreateObservation(ctx, observationID, []byte(delivered), requestID)
							cut()
							if e := asError(t, err); e == nil || !e.Ambiguous {
								t.Errorf("cut off: %v", e)
							}
							client = b.client(t, withoutConditions(cache)) // of the next process
						}
						b.sendUntilDone(t, client, name == "cut off by a stop")
						<-done
						synctest.Wait()
						if s := b.Stats(); s.Observations != 1 {
							t.Errorf("%s, done %s later, searches kept for %s: stored %d times: %v", name, late, cache, s.Observations, b.asked)
						}
					})
				}
			}
		}
	}
}

// Ours as it was shown: the first send is lost, the look finds nothing and the EMR keeps that, the second send arrives and its answer is lost.
func TestSearchCacheAsShown(t *testing.T) {
	arrive := troubles["500, done"]
	lose := troubles["500, not done"]
	for name, test := range map[string]struct {
		stubborn bool
		took     time.Duration // of the first delivery
		found    bool          // by the second look, in the first delivery
		wait     time.Duration
	}{
		"an EMR that is asked for a fresh answer":   {false, 3 * time.Second, true, 0},
		"an EMR that answers from its cache anyhow": {true, 3 * time.Second, false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, caching(time.Minute, test.stubborn))
				b.wrong = []int{0, 2}
				b.how = func(next http.Handler, w http.ResponseWriter, r *http.Request) {
					if len(b.asked) == 1 {
						lose(next, w, r)
						return
					}
					arrive(next, w, r)
				}
				client := b.client(t, withoutConditions(time.Minute))
				began := time.Now()
				created, e := b.send(t, client)
				if took := time.Since(began); took != test.took || !slices.Equal(b.asked, []string{"POST", "GET", "POST", "GET"}) {
					t.Errorf("%v after %s", b.asked, took)
				}
				if test.found {
					if e != nil || !created.AlreadyThere || created.EMRID == "" {
						t.Errorf("%+v %v", created, e)
					}
					return
				}
				if e == nil || !e.Ambiguous || e.LookAgain != test.wait || e.Status != 500 || e.Message != "EMR unavailable (500)" {
					t.Fatalf("%+v", e)
				}
				for _, wait := range []time.Duration{30 * time.Second, 59 * time.Second, time.Minute} { // each look counts anew
					time.Sleep(wait)
					id, found, err := client.FindObservation(t.Context(), observationID)
					if e := asError(t, err); wait < time.Minute && !found && (e == nil || e.LookAgain != time.Minute || e.Fault() != emr.OfRequest || e.Message != "EMR search may be out of date") {
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

// A process that was killed has looked, too: its successor believes "not there" only when a minute has passed.
func TestSearchCacheAfterARestart(t *testing.T) {
	for _, alive := range []time.Duration{0, 59 * time.Second, 60 * time.Second, time.Hour} {
		t.Run(alive.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, caching(time.Minute, true))
				before := b.client(t, withoutConditions(time.Minute))
				time.Sleep(time.Hour)
				if _, found, err := before.FindObservation(t.Context(), observationID); found || err != nil {
					t.Fatalf("%v %v", found, err)
				}
				// The look found nothing; what is sent now arrives, and nobody learns of it.
				b.wrong, b.how = []int{1}, troubles["500, done"]
				_, _ = b.send(t, b.client(t, func(o *emr.Options) { o.QuickRetryDelays = []time.Duration{} }))
				after := b.client(t, withoutConditions(time.Minute))
				time.Sleep(alive)
				_, found, err := after.FindObservation(t.Context(), observationID)
				e := asError(t, err)
				if alive < time.Minute != (e != nil && e.LookAgain == time.Minute) || alive >= time.Minute != found {
					t.Errorf("found %v, %+v", found, e)
				}
				if s := b.Stats(); s.Observations != 1 {
					t.Errorf("stored %d times", s.Observations)
				}
			})
		})
	}
}

// Whoever must know is not told "not there" from a cache, whatever creates are sent with; whoever sends conditionally need not wait.
func TestWhoWaitsForTheCache(t *testing.T) {
	for _, conditional := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t)
			client := b.client(t, withoutConditions(time.Minute), func(o *emr.Options) { o.ConditionalCreate = conditional })
			_, _, err := client.FindObservation(t.Context(), observationID)
			if waits := err != nil; waits == conditional {
				t.Errorf("conditional %t: %v", conditional, err)
			}
			_, _, err = client.LookUpObservation(t.Context(), observationID)
			if e := asError(t, err); e == nil || e.LookAgain != time.Minute {
				t.Errorf("conditional %t: %v", conditional, err)
			}
			time.Sleep(time.Minute)
			if _, found, err := client.LookUpObservation(t.Context(), observationID); err != nil || found {
				t.Errorf("%v %v", found, err)
			}
		})
	}
}

// The memory of look-ups forgets what no longer matters.
func TestLooksAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, posts(), withoutConditions(time.Minute))
		for n := range 5000 {
			_, _, _ = client.FindObservation(t.Context(), fmt.Sprint(n))
			time.Sleep(time.Second)
		}
		if kept := emr.RememberedLooks(client); kept > 1100 {
			t.Errorf("%d are kept", kept)
		}
	})
}

// Look-ups, and reads of what is to be updated, ask for an answer that is not kept.
func TestLooksAskForFreshAnswers(t *testing.T) {
	fake := &fakeEMR{replies: map[string][]reply{"GET": {{status: 200, body: bundle()}}, "POST": {{status: 503}}}}
	client := newClient(t, fake, func(o *emr.Options) { o.QuickRetryDelays = []time.Duration{1} })
	_, _ = deliver(t, client)
	_, _, _ = client.FindObservation(t.Context(), observationID)
	_, _, _ = client.LookUpObservation(t.Context(), observationID)
	_, _ = client.UpdateObservation(t.Context(), copyID, []byte(corrected), requestID, true)
	looks := 0
	for _, h := range fake.requests("fhir") {
		want := ""
		if h.method == http.MethodGet {
			want = "no-cache"
			looks++
		}
		if got := h.header.Get("Cache-Control"); got != want {
			t.Errorf("%s %s asks for %q", h.method, h.url, got)
		}
	}
	if looks != 4 {
		t.Errorf("%d looks", looks)
	}
}

// All calls of one delivery share its three quick retries.
func TestOneDeliverySharesItsQuickRetries(t *testing.T) {
	for looked := range 5 {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t)
			b.how = func(_ http.Handler, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }
			client, ctx := b.client(t), emr.OneDelivery(t.Context())
			for n := range looked {
				b.wrong = append(b.wrong, n)
			}
			_, _, err := client.FindObservation(ctx, observationID)
			if (err != nil) != (looked == 4) {
				t.Fatalf("after %d failures: %v", looked, err)
			}
			if err != nil {
				return
			}
			b.how = func(_ http.Handler, w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					w.WriteHeader(500)
					return
				}
				b.ServeHTTP(w, r)
			}
			for n := looked + 1; n < 20; n++ {
				b.wrong = append(b.wrong, n)
			}
			before := len(b.asked)
			_, err = client.CreateObservation(ctx, observationID, []byte(delivered), requestID)
			posts := 0
			for _, method := range b.asked[before:] {
				if method == http.MethodPost {
					posts++
				}
			}
			if e := asError(t, err); e == nil || posts != 4-looked {
				t.Errorf("after %d retries of the look %d sends", looked, posts)
			}
		})
	}
}

// A caller of its own has its own retries.
func TestQuickRetriesAreNotSharedByAccident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, posts(reply{status: 500}), quickRetries)
		for range 2 {
			_, e := deliver(t, client)
			if e == nil || len(e.Attempts) != 4 {
				t.Errorf("%+v", e)
			}
		}
		_, err := client.CreateObservation(context.Background(), observationID, []byte(resource), requestID)
		if e := asError(t, err); len(e.Attempts) != 4 {
			t.Errorf("%+v", e)
		}
	})
}
