package tokens

import "sync"

// mostKnown bounds the memory; when it is full it starts anew.
const mostKnown = 20_000

// memory remembers which tokens were found good, and for which secrets of their accounts, so that a signature is checked once and not with every
// request. When a token ends, and whether the account has changed, is asked each time. The zero value is ready.
type memory struct {
	lock  sync.RWMutex
	known map[string]goodToken
}

type goodToken struct {
	token     Token
	signedFor Account
}

func (m *memory) find(token string) (t Token, signedFor Account, seen bool) {
	m.lock.RLock()
	defer m.lock.RUnlock()
	good, seen := m.known[token]
	return good.token, good.signedFor, seen
}

func (m *memory) keep(token string, t Token, signedFor Account) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.known == nil || len(m.known) >= mostKnown {
		m.known = map[string]goodToken{}
	}
	m.known[token] = goodToken{t, signedFor}
}
