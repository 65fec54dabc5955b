package reports

import (
	"sync"
	"time"
)

// maxCached bounds the cache; when it is full, the oldest report is evicted.
const maxCached = 256

// cache stores finished reports for ttl. The zero value stores none.
type cache struct {
	ttl     time.Duration
	mutex   sync.Mutex
	reports map[string]Report
}

func (c *cache) find(key string, now time.Time) (Report, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found, ok := c.reports[key]
	if !ok || !c.isFresh(found, now) {
		return Report{}, false
	}
	found.Cached = true
	return found, true
}

func (c *cache) isFresh(r Report, now time.Time) bool { return now.Sub(r.GeneratedAt) < c.ttl }

func (c *cache) put(key string, report Report, now time.Time) {
	if c.ttl <= 0 {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.reports == nil {
		c.reports = map[string]Report{}
	}
	c.reports[key] = report
	if len(c.reports) <= maxCached {
		return
	}
	oldest := key
	for k, r := range c.reports {
		if r.GeneratedAt.Before(c.reports[oldest].GeneratedAt) {
			oldest = k
		}
		if !c.isFresh(r, now) {
			delete(c.reports, k)
		}
	}
	if len(c.reports) > maxCached {
		delete(c.reports, oldest)
	}
}
