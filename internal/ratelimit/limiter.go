// Package limits knows how many requests one caller may make in a sliding window, class by class. It counts exactly:
// a request is let in when fewer than the limit came in the window that ends now, and refused requests count too.
// It knows neither requests nor users, only classes, keys and the time it is handed; nothing outlives the process.
//
// Written here because the libraries at hand read the clock themselves, do not count what they refuse, or
// approximate: a counter of two fixed windows can refuse a caller who has been quiet for a whole window.
package ratelimit

import (
	"slices"
	"sort"
	"sync"
	"time"
)

// Class names a limit, as callers see it in the RateLimit-Policy header.
type Class string

// The classes. Source: docs/decisions/limits.md, "Which limit applies".
const (
	None     Class = ""         // not limited
	User     Class = "user"     // requests with an access token, by user; without a valid one they count as Anon
	Client   Class = "client"   // requests with an access token, by client
	Anon     Class = "anon"     // other requests, by address
	Auth     Class = "auth"     // passwords, second factors and what sends mail, by user or address; sign-ins by address and account, failed ones by address
	SignIn   Class = "sign_in"  // sign-ins, by address
	Refresh  Class = "refresh"  // swapping refresh tokens, by address
	Webhook  Class = "webhook"  // the device gateway, by address
	Realtime Class = "realtime" // opening streams, by address; subscribing, by user
)

// Policy is one limit: so many requests in any stretch of Window. Zero requests mean no limit.
type Policy struct {
	Requests int
	Window   time.Duration
}

// Result says whether a request may pass and how much is left.
type Result struct {
	Allowed   bool
	Class     Class
	Policy    Policy        // zero when nothing is limited
	Remaining int           // requests left now
	Reset     time.Duration // until the window frees quota; a refused caller may come back then
}

// Limiter counts requests in memory. It is safe for concurrent use.
type Limiter struct {
	windows map[Class]*window
}

// NewLimiter returns a limiter; classes without a policy are not limited.
func NewLimiter(policies map[Class]Policy) *Limiter {
	l := &Limiter{windows: map[Class]*window{}}
	for class, policy := range policies {
		if policy.Requests > 0 && policy.Window > 0 {
			l.windows[class] = &window{policy: policy, seen: map[string][]int64{}, maxKeys: maxKeys}
		}
	}
	return l
}

// Take counts one request of the key and says whether it may pass.
func (l *Limiter) Take(class Class, key string, now time.Time) Result {
	w, limited := l.windows[class]
	if !limited {
		return Result{Allowed: true, Class: class}
	}
	result := w.take(key, now.UnixNano())
	result.Class, result.Policy = class, w.policy
	return result
}

// Exhausted reports whether a key has nothing left, without counting anything.
func (l *Limiter) Exhausted(class Class, key string, now time.Time) bool {
	w, limited := l.windows[class]
	return limited && w.left(key, now.UnixNano()) == 0
}

// GiveBack takes back what was counted for a key at a time.
func (l *Limiter) GiveBack(class Class, key string, at time.Time) {
	if w, limited := l.windows[class]; limited {
		w.giveBack(key, at.UnixNano())
	}
}

const (
	// maxKeys bounds what one class remembers; newcomers beyond it share one budget until old keys have been forgotten.
	maxKeys = 1 << 17
	crowd   = "\x00crowd"
)

// window holds, for each key, the times of its latest requests (nanoseconds, oldest first): never more than the
// limit, because older ones cannot change an answer.
type window struct {
	mu      sync.Mutex
	policy  Policy
	seen    map[string][]int64
	swept   int64
	maxKeys int
}

func (w *window) take(key string, at int64) Result {
	w.mu.Lock()
	defer w.mu.Unlock()

	horizon := at - int64(w.policy.Window)
	w.sweep(at, horizon)
	if _, known := w.seen[key]; !known && len(w.seen) >= w.maxKeys {
		key = crowd
	}
	times := after(w.seen[key], horizon)
	allowed := len(times) < w.policy.Requests
	if !allowed {
		times = times[1:]
	}
	times = append(times, at)
	w.seen[key] = times
	return Result{
		Allowed:   allowed,
		Remaining: w.policy.Requests - len(times),
		Reset:     time.Duration(times[0] - horizon),
	}
}

func (w *window) left(key string, at int64) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.seen[key]; !known && len(w.seen) >= w.maxKeys {
		key = crowd
	}
	return w.policy.Requests - len(after(w.seen[key], at-int64(w.policy.Window)))
}

func (w *window) giveBack(key string, at int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	times := w.seen[key]
	i := slices.Index(times, at)
	if i < 0 {
		return
	}
	if times = slices.Delete(slices.Clone(times), i, i+1); len(times) == 0 {
		delete(w.seen, key)
		return
	}
	w.seen[key] = times
}

// sweep forgets idle keys, once per window.
func (w *window) sweep(at, horizon int64) {
	if at-w.swept < int64(w.policy.Window) {
		return
	}
	w.swept = at
	for key, times := range w.seen {
		if times[len(times)-1] <= horizon {
			delete(w.seen, key)
		}
	}
}

// after drops the times that have left the window.
func after(times []int64, horizon int64) []int64 {
	return times[sort.Search(len(times), func(i int) bool { return times[i] > horizon }):]
}
