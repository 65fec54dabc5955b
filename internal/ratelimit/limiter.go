// Package ratelimit limits requests and connections.
//
// [Limiter] counts the requests of a caller in a sliding window, by class. It counts exactly: a request is allowed if fewer than the limit came
// in the window that ends now, and refused requests count, too. It depends only on classes, keys and the time it is given, and keeps its counts
// in memory. Existing libraries read the clock themselves, do not count refused requests, or approximate: a counter of two fixed windows can
// refuse a caller who was idle for a whole window.
//
// [ConnLimiter] limits open connections, in total and by address, and the time a client may take to send a request. A connection waits for its
// client until a request is complete, and again between requests. Waiting costs a client nothing, so an attacker holds mostly waiting
// connections. When the limit is reached, the longest waiting connection of the address with the most connections is evicted, so a caller with a
// complete request, such as the gateway, is always admitted. golang.org/x/net/netutil.LimitListener stops accepting when it is full, so one
// client could lock out all others, and it does not count by address.
package ratelimit

import (
	"net/netip"
	"slices"
	"sort"
	"sync"
	"time"
)

// Class names a limit, as sent in the RateLimit-Policy header.
type Class string

// Classes. Source: docs/decisions/limits.md, "Which limit applies".
const (
	None     Class = ""         // not limited
	User     Class = "user"     // requests with an access token, by user; with an invalid token they count as Anon
	Client   Class = "client"   // requests with an access token, by client
	Anon     Class = "anon"     // other requests, by address
	Auth     Class = "auth"     // passwords, second factors and requests that send mail, by user or address; sign-ins by address and account, failed ones by address
	SignIn   Class = "sign_in"  // sign-ins, by address
	Refresh  Class = "refresh"  // rotation of refresh tokens, by address
	Webhook  Class = "webhook"  // the device gateway, by address
	Realtime Class = "realtime" // opening streams, by address; subscribing, by user
)

// Policy is one limit: Requests in any interval of Window. Zero requests mean no limit.
type Policy struct {
	Requests int
	Window   time.Duration
}

// Result reports whether a request is allowed and how much of the limit is left.
type Result struct {
	Allowed   bool
	Class     Class
	Policy    Policy        // zero if the class has no limit
	Remaining int           // requests left in the window
	Reset     time.Duration // time until quota is free again
}

// Limiter counts requests in memory. It is safe for concurrent use.
type Limiter struct {
	windows map[Class]*window
}

// NewLimiter returns a limiter. Classes without a policy are not limited.
func NewLimiter(policies map[Class]Policy) *Limiter {
	l := &Limiter{windows: map[Class]*window{}}
	for class, policy := range policies {
		if policy.Requests > 0 && policy.Window > 0 {
			l.windows[class] = &window{policy: policy, seen: map[string][]int64{}, maxKeys: maxKeys}
		}
	}
	return l
}

// Take counts one request of the key and reports whether it is allowed.
func (l *Limiter) Take(class Class, key string, now time.Time) Result {
	w, limited := l.windows[class]
	if !limited {
		return Result{Allowed: true, Class: class}
	}
	result := w.take(key, now.UnixNano())
	result.Class, result.Policy = class, w.policy
	return result
}

// IsExhausted reports whether the key has no requests left, without counting one.
func (l *Limiter) IsExhausted(class Class, key string, now time.Time) bool {
	w, limited := l.windows[class]
	return limited && w.left(key, now.UnixNano()) == 0
}

// Refund removes a request that Take counted for the key at the given time.
func (l *Limiter) Refund(class Class, key string, at time.Time) {
	if w, limited := l.windows[class]; limited {
		w.refund(key, at.UnixNano())
	}
}

const (
	// maxKeys bounds the keys of one class. New keys beyond it share one budget until idle keys are evicted.
	maxKeys   = 1 << 17
	sharedKey = "\x00crowd"
)

// window holds the times of each key's latest requests (nanoseconds, oldest first), at most as many as the limit, because older ones cannot
// change a result.
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
		key = sharedKey
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
		key = sharedKey
	}
	return w.policy.Requests - len(after(w.seen[key], at-int64(w.policy.Window)))
}

func (w *window) refund(key string, at int64) {
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

// sweep evicts idle keys, once per window.
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

// AddressKey returns the key of a client address: IPv4 addresses unchanged, IPv6 addresses cut to their /64, since one household or host
// commonly holds a whole /64. Text that is not an address is its own key. Source: docs/decisions/limits.md, "Which limit applies".
func AddressKey(address string) string {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	block, err := addr.Prefix(64)
	if err != nil {
		return address
	}
	return block.String()
}
