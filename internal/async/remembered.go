package async

import (
	"sync"
	"time"
)

// cacheTTL bounds the age of an entry, because another process may change the record unnoticed.
const believedFor = 30 * time.Second

// Cache keeps values for a short time by the id of the record they were read from. It serves what nearly every request needs and what seldom
// changes, such as the owner of a token.
type Cache[V any] struct {
	most int

	lock  sync.RWMutex
	known map[string]entry[V]
	// evictions counts calls of Evict: a value read before such a call must not be stored after it.
	forgotten uint64
}

type entry[V any] struct {
	value  V
	readAt time.Time
}

// NewCache returns an empty cache, which is cleared when it holds maxEntries entries.
func NewCache[V any](maxEntries int) *Cache[V] {
	return &Cache[V]{most: maxEntries, known: map[string]entry[V]{}}
}

// Get returns the cached value of a record, or the result of read. Errors of read are returned and not cached.
func (r *Cache[V]) Find(id string, now time.Time, read func() (V, error)) (V, error) {
	r.lock.RLock()
	found, ok := r.known[id]
	forgotten := r.forgotten
	r.lock.RUnlock()
	if ok && now.Sub(found.readAt) < believedFor {
		return found.value, nil
	}
	value, err := read()
	if err != nil {
		return value, err
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.forgotten == forgotten {
		if len(r.known) >= r.most {
			clear(r.known)
		}
		r.known[id] = entry[V]{value, now}
	}
	return value, nil
}

// Evict removes the entry of a record. Call it after the commit of a change: before, another caller could read and cache the old state again.
func (r *Cache[V]) Forget(id string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.known, id)
	r.forgotten++
}
