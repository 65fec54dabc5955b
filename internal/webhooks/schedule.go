package webhooks

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Schedule are the waits before each retry. Source: Standard Webhooks, "Deliverability and reliability".
type Schedule []time.Duration

// longestPause bounds what a receiver may ask for.
const longestPause = 24 * time.Hour

// Next is when to try again after the nth failure, a little later than it says so that retries do not come all at once; !ok means never by itself.
func (s Schedule) Next(failures int, at time.Time, spread float64) (next time.Time, ok bool) {
	if failures < 1 || failures > len(s) {
		return time.Time{}, false
	}
	wait := s[failures-1]
	return at.Add(wait + time.Duration(spread*float64(wait)/10)), true
}

// pauseOf is how long an answer asks to be left alone, within bounds; 0 when it does not. Source: RFC 9110, section 10.2.3; RFC 6585, section 4.
func pauseOf(status int, header http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if text == "" || status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return 0
	}
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) { // out of range it is the largest there is
		return time.Duration(min(seconds, uint64(longestPause/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), longestPause)
	}
	return 0
}
