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
func (cl *ConnLimiter) Counts() ConnCounts {
	cl.lock.Lock()
	defer cl.lock.Unlock()
	counts := ConnCounts{Open: int64(cl.open), Refused: cl.refused, Evicted: cl.evicted}
	for _, from := range cl.addresses {
		counts.Waiting += int64(from.waiting.Len())
	}
	return counts
}

// ConfigureServer sets the server's deadlines and hooks. It disables the server's ReadTimeout, which would also end streams and slow responses;
// the handler sets a read deadline for the body instead.
func (cl *ConnLimiter) ConfigureServer(server *http.Server) {
	server.ReadHeaderTimeout, server.ReadTimeout, server.IdleTimeout = cl.ReadHeaderTimeout, 0, cl.IdleTimeout
	server.ConnContext = withConn
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			connBelowTLS(c).markWaiting()
		}
	}
	// One connection may carry many requests: bound what it can buffer.
	server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100, MaxReceiveBufferPerConnection: 128 << 10, MaxReceiveBufferPerStream: 64 << 10}
	server.Handler = cl.handler(server.Handler)
}

// peerKey returns the key of a remote address and whether it is exempt from the limit per address.
func (cl *ConnLimiter) peerKey(remote string) (key string, exempt bool) {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote, false
	}
	if len(cl.Proxies) == 0 {
		exempt = len(cl.ProxyHeaders) > 0
	}
	for _, proxy := range cl.Proxies {
		exempt = exempt || proxy.Contains(from.Addr().Unmap().WithZone(""))
	}
	return AddressKey(from.Addr().String()), exempt
}

// admit counts a connection. It returns nil if the limit is reached, and the connection that was evicted, if any.
func (cl *ConnLimiter) admit(inner net.Conn) (admitted, evicted *conn) {
	key, exempt := cl.peerKey(inner.RemoteAddr().String())
	cl.lock.Lock()
	defer cl.lock.Unlock()
	from, known := cl.addresses[key]
	if !known {
		from = &addressState{isExempt: exempt, conns: map[*conn]struct{}{}}
	}
	full := cl.MaxPerAddress > 0 && !exempt && from.open >= cl.MaxPerAddress
	if !full && cl.Max > 0 && cl.open >= cl.Max {
		evicted = cl.evictionCandidate(from)
		full = evicted == nil
	}
	if full {
		cl.refused++
		return nil, nil
	}
	if evicted != nil {
		cl.evicted++
		evicted.release()
	}
	admitted = &conn{Conn: inner, limiter: cl, address: from, key: key}
	cl.addresses[key] = from
	cl.open++
	from.open++
	from.conns[admitted] = struct{}{}
	admitted.enqueue()
	return admitted, evicted
}

// evictionCandidate returns the connection to evict for a new one: a waiting connection of the address with the most connections, and among
// equals the longest waiting. If none is waiting, it returns one with a stalled write. The caller holds the lock.
func (cl *ConnLimiter) evictionCandidate(newcomer *addressState) *conn {
	var chosen *conn
	var weight int
	for _, from := range cl.addresses {
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
	now := cl.Clock().UnixNano()
	for _, from := range cl.addresses {
		for c := range from.conns {
			if since := c.writing.Load(); since != 0 && now-since > int64(stalledWrite) && (chosen == nil || from.open > weight) {
				chosen, weight = c, from.open
			}
		}
	}
	return chosen
}

// evictOne closes the eviction candidate when the process runs out of file descriptors. It returns false if there is none.
func (cl *ConnLimiter) evictOne() bool {
	cl.lock.Lock()
	chosen := cl.evictionCandidate(nil)
	if chosen != nil {
		cl.evicted++
		chosen.release()
	}
	cl.lock.Unlock()
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
