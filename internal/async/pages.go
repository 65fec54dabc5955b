package async

import "sync"

// Pages remembers what was made of one state of the database until there is another: then all of it is worth nothing. It holds no more bytes than it
// was made for, and begins anew when it would.
type Pages[S comparable, P any] struct {
	most int

	lock  sync.Mutex
	state S
	known map[string]P
	held  int
}

// NewPages returns an empty memory of at most so many bytes.
func NewPages[S comparable, P any](most int) *Pages[S, P] {
	return &Pages[S, P]{most: most, known: map[string]P{}}
}

// Find returns what is remembered of a state.
func (p *Pages[S, P]) Find(key string, state S) (page P, known bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.state == state {
		page, known = p.known[key]
	}
	return page, known
}

// Remember stores a page of so many bytes. The state must have been read before anything that the page is made of: what was changed meanwhile is then shown
// under an older state, and never found again.
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
	if _, known := p.known[key]; !known { // two may have made it at once
		p.known[key], p.held = page, p.held+bytes
	}
}
