package ratelimit

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)

func TestTakeUntilRefused(t *testing.T) {
	l := NewLimiter(map[Class]Policy{Auth: {Requests: 3, Window: time.Minute}})
	steps := []struct {
		after     time.Duration
		allowed   bool
		remaining int
		reset     time.Duration
	}{
		{0, true, 2, time.Minute},
		{10 * time.Second, true, 1, 50 * time.Second},
		{20 * time.Second, true, 0, 40 * time.Second},
		{30 * time.Second, false, 0, 40 * time.Second}, // counts: the requests at 10, 20 and 30 s now fill the window
		{60 * time.Second, false, 0, 20 * time.Second},
		{80 * time.Second, true, 0, 10 * time.Second}, // exactly the announced wait later
		{3 * time.Minute, true, 2, time.Minute},
	}
	for _, step := range steps {
		got := l.Take(Auth, "192.0.2.1", start.Add(step.after))
		if got.Allowed != step.allowed || got.Remaining != step.remaining || got.Reset != step.reset {
			t.Errorf("after %v: got %+v, want allowed %v, remaining %d, reset %v", step.after, got, step.allowed, step.remaining, step.reset)
		}
		if got.Class != Auth || got.Policy.Requests != 3 {
			t.Errorf("after %v: result does not name its policy: %+v", step.after, got)
		}
	}
}

func TestKeysAndClassesAreIndependent(t *testing.T) {
	l := NewLimiter(map[Class]Policy{User: {1, time.Hour}, Anon: {1, time.Hour}, Webhook: {0, time.Hour}})
	for _, take := range []struct {
		class   Class
		key     string
		allowed bool
	}{
		{User, "a", true},
		{User, "a", false},
		{User, "b", true},
		{Anon, "a", true},
		{Anon, "a", false},
		{Webhook, "a", true},
		{Webhook, "a", true},
		{None, "a", true},
		{None, "a", true},
	} {
		if got := l.Take(take.class, take.key, start); got.Allowed != take.allowed {
			t.Errorf("%s %s: allowed %v, want %v", take.class, take.key, got.Allowed, take.allowed)
		}
	}
	if got := l.Take(Webhook, "a", start); got.Policy != (Policy{}) {
		t.Errorf("an unlimited class names a policy: %+v", got)
	}
}

func TestIdleKeysAreEvicted(t *testing.T) {
	l := NewLimiter(map[Class]Policy{Anon: {5, time.Minute}})
	for i := range 100 {
		l.Take(Anon, fmt.Sprint(i), start)
	}
	l.Take(Anon, "late", start.Add(90*time.Second))
	if n := len(l.windows[Anon].seen); n != 1 {
		t.Errorf("%d keys held, want 1", n)
	}
}

func TestNewKeysShareABudgetWhenFull(t *testing.T) {
	l := NewLimiter(map[Class]Policy{Anon: {2, time.Minute}})
	w := l.windows[Anon]
	w.maxKeys = 3
	for i := range 3 {
		l.Take(Anon, fmt.Sprint("early", i), start)
	}
	allowed := 0
	for i := range 10 {
		if l.Take(Anon, fmt.Sprint("late", i), start).Allowed {
			allowed++
		}
	}
	if allowed != 2 || len(w.seen) != 4 {
		t.Errorf("%d new keys allowed with %d keys held, want 2 and 4", allowed, len(w.seen))
	}
	if !l.Take(Anon, "early0", start).Allowed {
		t.Error("a known key lost its own budget")
	}
}

func TestConcurrentTakesNeverExceedTheLimit(t *testing.T) {
	l := NewLimiter(map[Class]Policy{User: {50, time.Hour}})
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if l.Take(User, "u", start).Allowed {
					allowed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if allowed.Load() != 50 {
		t.Errorf("%d of 160 let in, want 50", allowed.Load())
	}
}

// TestTakeFollowsTheDefinition: a request is allowed if fewer than the limit, including refused ones, came in the window before it.
func TestTakeFollowsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := Policy{Requests: rapid.IntRange(1, 6).Draw(t, "limit"), Window: 10 * time.Second}
		l := NewLimiter(map[Class]Policy{User: policy})
		now, history := start, []time.Time{}
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 6000).Draw(t, "ms")) * time.Millisecond)
			recent := slices.DeleteFunc(slices.Clone(history), func(at time.Time) bool { return now.Sub(at) >= policy.Window })
			got := l.Take(User, "u", now)
			history = append(history, now)
			if want := len(recent) < policy.Requests; got.Allowed != want {
				t.Fatalf("at %v: allowed %v, want %v", now, got.Allowed, want)
			}
			if want := max(0, policy.Requests-len(recent)-1); got.Remaining != want {
				t.Fatalf("at %v: remaining %d, want %d", now, got.Remaining, want)
			}
			if got.Reset <= 0 || got.Reset > policy.Window {
				t.Fatalf("reset %v outside the window", got.Reset)
			}
		}
		if got := l.Take(User, "u", now); !got.Allowed && !l.Take(User, "u", now.Add(got.Reset)).Allowed {
			t.Fatalf("refused again after the announced wait")
		}
	})
}

func TestAddressKey(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7":            "192.0.2.7",
		"::ffff:192.0.2.7":     "192.0.2.7",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"2001:0db8:0001:0002:ffff:0000:0000:0001": "2001:db8:1:2::/64",
		"fe80::1%eth0": "fe80::/64",
		"invalid IP":   "invalid IP",
	} {
		if got := AddressKey(address); got != want {
			t.Errorf("AddressKey(%q) = %q, want %q", address, got, want)
		}
	}
}

func ExampleLimiter() {
	l := NewLimiter(map[Class]Policy{Auth: {Requests: 1, Window: time.Minute}})
	now := time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)
	fmt.Println(l.Take(Auth, "192.0.2.1", now).Allowed)
	refused := l.Take(Auth, "192.0.2.1", now.Add(15*time.Second))
	fmt.Println(refused.Allowed, refused.Reset)
	// Output:
	// true
	// false 1m0s
}

func TestRefund(t *testing.T) {
	l := NewLimiter(map[Class]Policy{Realtime: {Requests: 2, Window: time.Minute}})
	at := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	if l.IsExhausted(Realtime, "a", at) || l.IsExhausted(User, "a", at) {
		t.Error("exhausted before anything was taken")
	}
	l.Take(Realtime, "a", at)
	l.Take(Realtime, "a", at.Add(time.Second))
	if !l.IsExhausted(Realtime, "a", at.Add(time.Second)) || l.IsExhausted(Realtime, "b", at.Add(time.Second)) {
		t.Error("after two of two")
	}
	l.Refund(Realtime, "a", at.Add(time.Hour)) // never taken
	l.Refund(User, "a", at)                    // never limited
	l.Refund(Realtime, "a", at)
	if l.IsExhausted(Realtime, "a", at.Add(time.Second)) {
		t.Error("nothing was refunded")
	}
	l.Refund(Realtime, "a", at)
	l.Refund(Realtime, "a", at.Add(time.Second))
	for range 2 {
		if !l.Take(Realtime, "a", at.Add(2*time.Second)).Allowed {
			t.Error("refused after everything was refunded")
		}
	}
	if l.Take(Realtime, "a", at.Add(2*time.Second)).Allowed {
		t.Error("more was refunded than taken")
	}
}
