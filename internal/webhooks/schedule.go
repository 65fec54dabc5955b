package webhooks

import (
	"net/http"
	"time"

	"github.com/vigilhealth/vigil/internal/egress"
)

// Schedule are the waits before each retry. Source: Standard Webhooks, "Deliverability and reliability".
type Schedule []time.Duration

// Next is when to try again after the nth failure, a little later than it says so that retries do not come all at once; !ok means never by itself.
func (s Schedule) Next(failures int, at time.Time, spread float64) (next time.Time, ok bool) {
	if failures < 1 || failures > len(s) {
		return time.Time{}, false
	}
	wait := s[failures-1]
	return at.Add(wait + time.Duration(spread*float64(wait)/10)), true
}

// pauseOf is how long an answer asks to be left alone; 0 when it does not. Source: RFC 6585, section 4.
func pauseOf(status int, header http.Header, now time.Time) time.Duration {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return 0
	}
	wait, _ := egress.RetryAfter(header, now)
	return wait
}
