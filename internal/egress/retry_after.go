package egress

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxWait bounds a requested wait, so that it cannot overflow.
const maxWait = 24 * time.Hour

// RetryAfter returns the wait that a response requests; given is false without a valid header. Source: RFC 9110, section 10.2.3.
func RetryAfter(header http.Header, now time.Time) (wait time.Duration, given bool) {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) { // out of range means the largest value
		return time.Duration(min(seconds, uint64(maxWait/time.Second))) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), maxWait), true
	}
	return 0, false
}
