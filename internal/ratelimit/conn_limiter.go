package ratelimit

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// ConnOptions configure a [ConnLimiter].
type ConnOptions struct {
	// Max and MaxPerAddress bound the open connections; 0 is no limit. An IPv6 /64 counts as one address.
	Max, MaxPerAddress int
	// Proxies are the trusted proxies. They are exempt from the limit per address, and only they may name a client's address in one of
	// ProxyHeaders. If the list is empty but ProxyHeaders is not, every peer is treated as a trusted proxy.
	Proxies      []netip.Prefix
	ProxyHeaders []string
	// ReadHeaderTimeout bounds TLS handshake and headers, ReadBodyTimeout the body, IdleTimeout the wait for the next request.
	ReadHeaderTimeout, ReadBodyTimeout, IdleTimeout time.Duration
	// Clock must be the system clock, because connection deadlines use it.
	Clock func() time.Time
}

// ConnLimiter limits connections and concurrent requests. It is safe for concurrent use.
type ConnLimiter struct {
	ConnOptions

	lock          sync.Mutex
	open          int
	addresses     map[string]*addressState
	lastWaitOrder uint64

	refused, evicted int64
}

// addressState holds the connections of one client address or proxy.
type addressState struct {
	isExempt bool
	open     int
	requests int
	waiting  list.List // of *conn, longest waiting first
	conns    map[*conn]struct{}
}

// NewConnLimiter returns a limiter without connections.
func NewConnLimiter(o ConnOptions) *ConnLimiter {
	return &ConnLimiter{ConnOptions: o, addresses: map[string]*addressState{}}
}

// ConnCounts holds the open connections, those that wait for their clients, and those refused or evicted since the start.
type ConnCounts struct{ Open, Waiting, Refused, Evicted int64 }

// Counts returns the current counts.
func (g *ConnLimiter) Counts() ConnCounts {
	g.lock.Lock()
	defer g.lock.Unlock()
	counts := ConnCounts{Open: int64(g.open), Refused: g.refused, Evicted: g.evicted}
	for _, from := range g.addresses {
		counts.Waiting += int64(from.waiting.Len())
	}
	return counts
}

// ConfigureServer sets the server's deadlines and hooks. It disables the server's ReadTimeout, which would also end streams and slow responses;
// the handler sets a read deadline for the body instead.
func (g *ConnLimiter) ConfigureServer(server *http.Server) {
	server.ReadHeaderTimeout, server.ReadTimeout, server.IdleTimeout = g.ReadHeaderTimeout, 0, g.IdleTimeout
	server.ConnContext = withConn
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			connBelowTLS(c).markWaiting()
		}
	}
	// One connection may carry many requests: bound what it can buffer.
	server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100, MaxReceiveBufferPerConnection: 128 << 10, MaxReceiveBufferPerStream: 64 << 10}
	server.Handler = g.handler(server.Handler)
}

// peerKey returns the key of a remote address and whether it is exempt from the limit per address.
func (g *ConnLimiter) peerKey(remote string) (key string, exempt bool) {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote, false
	}
	if len(g.Proxies) == 0 {
		exempt = len(g.ProxyHeaders) > 0
	}
	for _, proxy := range g.Proxies {
		exempt = exempt || proxy.Contains(from.Addr().Unmap().WithZone(""))
	}
	return AddressKey(from.Addr().String()), exempt
}

// admit counts a connection. It returns nil if the limit is reached, and the connection that was evicted, if any.
func (g *ConnLimiter) admit(inner net.Conn) (admitted, evicted *conn) {
	key, exempt := g.peerKey(inner.RemoteAddr().String())
	g.lock.Lock()
	defer g.lock.Unlock()
	from, known := g.addresses[key]
	if !known {
		from = &addressState{isExempt: exempt, conns: map[*conn]struct{}{}}
	}
	full := g.MaxPerAddress > 0 && !exempt && from.open >= g.MaxPerAddress
	if !full && g.Max > 0 && g.open >= g.Max {
		evicted = g.evictionCandidate(from)
		full = evicted == nil
	}
	if full {
		g.refused++
		return nil, nil
	}
	if evicted != nil {
		g.evicted++
		evicted.release()
	}
	admitted = &conn{Conn: inner, limiter: g, address: from, key: key}
	g.addresses[key] = from
	g.open++
	from.open++
	from.conns[admitted] = struct{}{}
	admitted.enqueue()
	return admitted, evicted
}

// evictionCandidate returns the connection to evict for a new one: a waiting connection of the address with the most connections, and among
// equals the longest waiting. If none is waiting, it returns one with a stalled write. The caller holds the lock.
func (g *ConnLimiter) evictionCandidate(newcomer *addressState) *conn {
	var chosen *conn
	var weight int
	for _, from := range g.addresses {
		first := from.longestWaiting()
		if first == nil {
			continue
		}
		held := from.open
		if from == newcomer {
			held++
		}
		switch {
		case chosen == nil, held > weight:
		case held < weight, first.waitOrder > chosen.waitOrder:
			continue
		}
		chosen, weight = first, held
	}
	if chosen != nil {
		return chosen
	}
	now := g.Clock().UnixNano()
	for _, from := range g.addresses {
		for c := range from.conns {
			if since := c.writing.Load(); since != 0 && now-since > int64(stalledWrite) && (chosen == nil || from.open > weight) {
				chosen, weight = c, from.open
			}
		}
	}
	return chosen
}

// evictOne closes the eviction candidate when the process runs out of file descriptors. It returns false if there is none.
func (g *ConnLimiter) evictOne() bool {
	g.lock.Lock()
	chosen := g.evictionCandidate(nil)
	if chosen != nil {
		g.evicted++
		chosen.release()
	}
	g.lock.Unlock()
	if chosen == nil {
		return false
	}
	_ = chosen.Conn.Close() // the error does not matter for an evicted connection
	return true
}

// longestWaiting returns the longest waiting connection of the address, or nil.
func (a *addressState) longestWaiting() *conn {
	if front := a.waiting.Front(); front != nil {
		return front.Value.(*conn)
	}
	return nil
}
