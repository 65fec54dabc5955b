package async

import (
	"sync"
	"time"
)

// cacheTTL bounds the age of an entry, because another process may change the record unnoticed.
const cacheTTL = 30 * time.Second

// Cache keeps values for a short time by the id of the record they were read from. It serves what nearly every request needs and what seldom
// changes, such as the owner of a token.
type Cache[V any] struct {
	maxEntries int

	lock    sync.RWMutex
	entries map[string]entry[V]
	// evictions counts calls of Evict: a value read before such a call must not be stored after it.
	evictions uint64
}

type entry[V any] struct {
	value  V
	readAt time.Time
}

// NewCache returns an empty cache, which is cleared when it holds maxEntries entries.
func NewCache[V any](maxEntries int) *Cache[V] {
	return &Cache[V]{maxEntries: maxEntries, entries: map[string]entry[V]{}}
}

// Get returns the cached value of a record, or the result of read. Errors of read are returned and not cached.
func (c *Cache[V]) Get(id string, now time.Time, read func() (V, error)) (V, error) {
	c.lock.RLock()
	found, ok := c.entries[id]
	evictions := c.evictions
	c.lock.RUnlock()
	if ok && now.Sub(found.readAt) < cacheTTL {
		return found.value, nil
	}
	value, err := read()
	if err != nil {
		return value, err
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.evictions == evictions {
		if len(c.entries) >= c.maxEntries {
			clear(c.entries)
		}
		c.entries[id] = entry[V]{value, now}
	}
	return value, nil
}

// Evict removes the entry of a record. Call it after the commit of a change: before, another caller could read and cache the old state again.
func (c *Cache[V]) Evict(id string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.entries, id)
	c.evictions++
}
