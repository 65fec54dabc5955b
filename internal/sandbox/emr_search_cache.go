package sandbox

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// searchCache answers a search with a recent result of the same search, as HAPI FHIR does for a minute. Source: HAPI FHIR documentation,
// "Search Result Caching".
type searchCache struct {
	life     time.Duration
	stubborn bool // answers from the cache even if the caller forbids it
	now      func() time.Time

	mu     sync.Mutex
	cached map[string]cachedAnswer
}

type cachedAnswer struct {
	at     time.Time
	answer *httptest.ResponseRecorder
}

// wrap adds the cache to a search handler.
func (c *searchCache) wrap(next http.HandlerFunc) http.HandlerFunc {
	if c.life <= 0 {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		fresh := !c.stubborn && strings.Contains(r.Header.Get("Cache-Control"), "no-cache")
		c.mu.Lock()
		cached, found := c.cached[r.URL.RawQuery]
		c.mu.Unlock()
		if fresh || !found || c.now().Sub(cached.at) >= c.life {
			cached = cachedAnswer{c.now(), httptest.NewRecorder()}
			next(cached.answer, r)
			c.mu.Lock()
			c.cached[r.URL.RawQuery] = cached
			c.mu.Unlock()
		} else {
			w.Header().Set("X-Cache", "HIT")
		}
		w.Header().Set("Content-Type", cached.answer.Header().Get("Content-Type"))
		w.WriteHeader(cached.answer.Code)
		_, _ = w.Write(cached.answer.Body.Bytes()) // the caller closed the connection
	}
}
