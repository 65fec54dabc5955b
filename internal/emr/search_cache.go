package emr

import (
	"sync"
	"time"
)

// maxSearches is how many observations are kept before outdated entries are evicted.
const maxSearches = 1024

// maxProcessing is how long an EMR may still be processing a request that the sender stopped waiting for.
const maxProcessing = time.Minute

// searchCache records when the EMR was searched for each observation, and when the service stopped waiting for a request. An EMR may return a
// cached search result, or search before it has finished the last request: "not found" is trusted only when neither is possible.
// Source: docs/decisions/transmissions.md, "Look-ups and the EMR's search cache".
type searchCache struct {
	cacheLife time.Duration // how long an EMR may cache a result
	startedAt time.Time     // an earlier process may have searched or sent until then

	mu      sync.Mutex
	entries map[string]searchEntry // by observation, and by the query of a search by content
	evictAt int                    // the number of entries at which outdated ones are evicted
}

// searchEntry holds the times of the last search, of the last search with a result that the EMR may cache although it precedes the last
// request, and of the last request that ended without a response.
type searchEntry struct{ searchedAt, staleSince, abandonedAt time.Time }

func newSearchCache(cacheLife time.Duration, now func() time.Time) *searchCache {
	return &searchCache{cacheLife: max(cacheLife, 0), startedAt: now(), entries: map[string]searchEntry{}, evictAt: maxSearches}
}

// staleUntil returns until when "not found" under a key may be wrong; the zero time when it can be trusted. isRecovered: an earlier process may
// have searched and sent, too.
func (s *searchCache) staleUntil(key string, isRecovered bool) (until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry := s.entries[key]
	if isRecovered && entry.staleSince.IsZero() {
		entry.staleSince = s.startedAt
	}
	if isRecovered && entry.abandonedAt.IsZero() {
		entry.abandonedAt = s.startedAt
	}
	if !entry.abandonedAt.IsZero() {
		until = entry.abandonedAt.Add(maxProcessing)
	}
	if cached := entry.staleSince.Add(s.cacheLife); !entry.staleSince.IsZero() && cached.After(until) {
		until = cached
	}
	return until
}

// recordSearch records a search; stale means that its result may have come from the EMR's cache, and may be cached again.
func (s *searchCache) recordSearch(key string, stale bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update(key, now, func(entry *searchEntry) {
		entry.searchedAt = now
		if stale {
			entry.staleSince = now
		}
	})
}

// recordAbandoned records that the service stopped waiting for a request that the EMR may be processing.
func (s *searchCache) recordAbandoned(o sought, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range o.keys() {
		s.update(key, now, func(entry *searchEntry) { entry.abandonedAt = now })
	}
}

// update changes one entry; it evicts outdated entries first when there are many. The caller holds the lock.
func (s *searchCache) update(key string, now time.Time, change func(*searchEntry)) {
	if len(s.entries) >= s.evictAt {
		for id, entry := range s.entries {
			if now.Sub(entry.searchedAt) >= s.cacheLife && now.Sub(entry.staleSince) >= s.cacheLife && now.Sub(entry.abandonedAt) >= maxProcessing {
				delete(s.entries, id)
			}
		}
		s.evictAt = max(maxSearches, 2*len(s.entries))
	}
	entry := s.entries[key]
	change(&entry)
	s.entries[key] = entry
}

// recordSend records that an observation is sent: earlier results of a search by identifier are outdated, and one by content, which other
// observations share, can be trusted only after the cache's life.
func (s *searchCache) recordSend(o sought, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if entry, searched := s.entries[o.id]; searched {
		entry.staleSince = entry.searchedAt
		s.entries[o.id] = entry
	}
	if o.query != "" && s.cacheLife > 0 {
		s.update(o.query, now, func(entry *searchEntry) { entry.staleSince = now })
	}
}
