package egress

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestWait bounds what an answer may ask for: more is as good as never, and must not overflow.
const longestWait = 24 * time.Hour

// RetryAfter is how long an answer asks to be left alone; given is false when it does not say. Source: RFC 9110, section 10.2.3.
func RetryAfter(header http.Header, now time.Time) (wait time.Duration, given bool) {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) { // out of range it is the largest there is
		return time.Duration(min(seconds, uint64(longestWait/time.Second))) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), longestWait), true
	}
	return 0, false
}
