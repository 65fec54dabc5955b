package webhooks

import (
	"net/http"
	"time"

	"github.com/vigilhealth/vigil/internal/egress"
)

// Schedule lists the waits before each retry. Source: Standard Webhooks, "Deliverability and reliability".
type Schedule []time.Duration

// Next returns when to retry after the nth failure. The fraction jitter, in [0, 1), adds up to a tenth of the wait, so that retries do not arrive
// all at once. ok is false if there is no automatic retry.
func (s Schedule) Next(failures int, at time.Time, jitter float64) (next time.Time, ok bool) {
	if failures < 1 || failures > len(s) {
		return time.Time{}, false
	}
	wait := s[failures-1]
	return at.Add(wait + time.Duration(jitter*float64(wait)/10)), true
}

// retryAfter returns the pause that the receiver requested with status 429 or 503, or 0. Source: RFC 6585, section 4.
func retryAfter(status int, header http.Header, now time.Time) time.Duration {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return 0
	}
	wait, _ := egress.RetryAfter(header, now)
	return wait
}
