package async

import "sync"

// PageCache caches what was computed from one state of the database. All entries are invalid once the state changes. When an entry would exceed the
// byte limit, the cache is cleared first.
type Pages[S comparable, P any] struct {
	most int

	lock  sync.Mutex
	state S
	known map[string]P
	held  int
}

// NewPageCache returns an empty cache of at most maxBytes bytes.
func NewPages[S comparable, P any](maxBytes int) *Pages[S, P] {
	return &Pages[S, P]{most: maxBytes, known: map[string]P{}}
}

// Get returns the cached page of a key in a state.
func (p *Pages[S, P]) Find(key string, state S) (page P, known bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.state == state {
		page, known = p.known[key]
	}
	return page, known
}

// Put caches a page of a size in bytes. The caller must read the state before anything the page is computed from: a page computed during a change is
// then stored under the old state and never returned.
func (p *Pages[S, P]) Remember(key string, state S, page P, bytes int) {
	bytes += len(key)
	if bytes > p.most {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.state != state || p.held+bytes > p.most {
		p.state, p.held = state, 0
		clear(p.known)
	}
	if _, known := p.known[key]; !known { // another caller may have stored the same page
		p.known[key], p.held = page, p.held+bytes
	}
}
