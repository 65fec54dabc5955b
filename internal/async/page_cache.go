package async

import "sync"

// PageCache caches what was computed from one state of the database. All entries are invalid once the state changes. When an entry would exceed the
// byte limit, the cache is cleared first.
type PageCache[S comparable, P any] struct {
	maxBytes int

	lock      sync.Mutex
	state     S
	entries   map[string]P
	usedBytes int
}

// NewPageCache returns an empty cache of at most maxBytes bytes.
func NewPageCache[S comparable, P any](maxBytes int) *PageCache[S, P] {
	return &PageCache[S, P]{maxBytes: maxBytes, entries: map[string]P{}}
}

// Get returns the cached page of a key in a state.
func (p *PageCache[S, P]) Get(key string, state S) (page P, known bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.state == state {
		page, known = p.entries[key]
	}
	return page, known
}

// Put caches a page of a size in bytes. The caller must read the state before anything the page is computed from: a page computed during a change is
// then stored under the old state and never returned.
func (p *PageCache[S, P]) Put(key string, state S, page P, bytes int) {
	bytes += len(key)
	if bytes > p.maxBytes {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.state != state || p.usedBytes+bytes > p.maxBytes {
		p.state, p.usedBytes = state, 0
		clear(p.entries)
	}
	if _, known := p.entries[key]; !known { // another caller may have stored the same page
		p.entries[key], p.usedBytes = page, p.usedBytes+bytes
	}
}
