// Package remembered keeps in memory, for a short while, what nearly every request asks for and what seldom changes: who a token belongs to.
package async

import (
	"sync"
	"time"
)

// believedFor bounds how long an entry is believed: another process may change what it was read from without telling us.
const believedFor = 30 * time.Second

// Cache remembers values by the id of the record that they were read from.
type Cache[V any] struct {
	most int

	lock  sync.RWMutex
	known map[string]entry[V]
	// forgotten counts calls of Forget: what was read before such a call must not be remembered after it.
	forgotten uint64
}

type entry[V any] struct {
	value  V
	readAt time.Time
}

// NewCache returns an empty memory, which begins anew when it holds most of them.
func NewCache[V any](most int) *Cache[V] {
	return &Cache[V]{most: most, known: map[string]entry[V]{}}
}

// Find returns what is remembered of a record, or what read finds. An error of read is returned, and not remembered.
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

// Forget drops what is remembered of a record. It is to be called after a change has been committed: before that the old state could be read and
// remembered again.
func (r *Cache[V]) Forget(id string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.known, id)
	r.forgotten++
}
