package reports

import (
	"sync"
	"time"
)

// mostKept bounds the memory of the cache; when it is full the oldest goes.
const mostKept = 256

// cache keeps finished reports. The zero value keeps none.
type cache struct {
	keep  time.Duration
	mutex sync.Mutex
	kept  map[string]Report
}

func (c *cache) find(key string, now time.Time) (Report, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found, ok := c.kept[key]
	if !ok || !c.fresh(found, now) {
		return Report{}, false
	}
	found.Cached = true
	return found, true
}

func (c *cache) fresh(r Report, now time.Time) bool { return now.Sub(r.GeneratedAt) < c.keep }

func (c *cache) put(key string, report Report, now time.Time) {
	if c.keep <= 0 {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.kept == nil {
		c.kept = map[string]Report{}
	}
	c.kept[key] = report
	if len(c.kept) <= mostKept {
		return
	}
	oldest := key
	for k, r := range c.kept {
		if r.GeneratedAt.Before(c.kept[oldest].GeneratedAt) {
			oldest = k
		}
		if !c.fresh(r, now) {
			delete(c.kept, k)
		}
	}
	if len(c.kept) > mostKept {
		delete(c.kept, oldest)
	}
}
