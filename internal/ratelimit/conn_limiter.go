// Package sockets knows how many connections the service holds open, in all and by address, how long a client may take to say what it
// wants, and which connection goes first when there are too many. It refuses to know what is asked over them.
//
// A connection waits for its client until a request is complete, and again between two requests. What waits costs the client nothing, so that
// it is what an attacker holds most of: when all places are taken, the one that has waited longest gives way, of the address that holds the
// most. A caller with a whole request, such as the gateway, finds a place however many others are held open.
//
// Written here because golang.org/x/net/netutil.LimitListener stops accepting when it is full, so that whoever fills it shuts everybody out, and
// counts no addresses. Nothing else kept up to date does either below HTTP.
package ratelimit

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// ConnOptions are the settings of a gate.
type ConnOptions struct {
	// Max and MaxPerAddress bound the open connections; 0 is no limit. Of IPv6 a /64 is one address.
	Max, MaxPerAddress int
	// Proxies are the peers whose connections are many people's: the limit by address does not count them, and they alone are believed when they
	// name a client's address in one of ProxyHeaders. Without any, whoever names an address is believed and every peer is taken for the proxy.
	Proxies      []netip.Prefix
	ProxyHeaders []string
	// ReadHeaderTimeout bounds TLS handshake and headers, ReadBodyTimeout the body, IdleTimeout the wait for the next request.
	ReadHeaderTimeout, ReadBodyTimeout, IdleTimeout time.Duration
	// Clock is the machine's: deadlines of connections go by no other.
	Clock func() time.Time
}

// ConnLimiter counts connections and requests. It is safe for concurrent use.
type ConnLimiter struct {
	ConnOptions

	lock      sync.Mutex
	open      int
	addresses map[string]*address
	turn      uint64

	refused, cut int64
}

// address is one client's, or one proxy's.
type address struct {
	exempt   bool
	open     int
	requests int
	waiting  list.List // of *conn, who has waited longest first
	all      map[*conn]struct{}
}

// NewConnLimiter returns a gate through which nobody has come.
func NewConnLimiter(o ConnOptions) *ConnLimiter {
	return &ConnLimiter{ConnOptions: o, addresses: map[string]*address{}}
}

// ConnCounts are how many connections are open, how many of them wait for their clients, and how many were refused or cut off to make room since the start.
type ConnCounts struct{ Open, Waiting, Refused, Cut int64 }

// Counts returns what was counted.
func (g *ConnLimiter) Counts() ConnCounts {
	g.lock.Lock()
	defer g.lock.Unlock()
	counts := ConnCounts{Open: int64(g.open), Refused: g.refused, Cut: g.cut}
	for _, from := range g.addresses {
		counts.Waiting += int64(from.waiting.Len())
	}
	return counts
}

// Secure gives a server the deadlines of the gate, and has it tell the gate what its connections do. The server's own limit on the time to read a
// request would end streams and slow answers too: the handler has a better one.
func (g *ConnLimiter) Secure(server *http.Server) {
	server.ReadHeaderTimeout, server.ReadTimeout, server.IdleTimeout = g.ReadHeaderTimeout, 0, g.IdleTimeout
	server.ConnContext = withConn
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			ours(c).wait()
		}
	}
	// One connection may carry many requests: let none hold much that nobody reads.
	server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100, MaxReceiveBufferPerConnection: 128 << 10, MaxReceiveBufferPerStream: 64 << 10}
	server.Handler = g.handler(server.Handler)
}

// peer tells whose connection it is, and whether it is a proxy's.
func (g *ConnLimiter) peer(remote string) (key string, exempt bool) {
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

// admit takes a place for a connection; it returns nil when there is none, and the connection that had to give way.
func (g *ConnLimiter) admit(inner net.Conn) (admitted, gaveWay *conn) {
	key, exempt := g.peer(inner.RemoteAddr().String())
	g.lock.Lock()
	defer g.lock.Unlock()
	from, known := g.addresses[key]
	if !known {
		from = &address{exempt: exempt, all: map[*conn]struct{}{}}
	}
	full := g.MaxPerAddress > 0 && !exempt && from.open >= g.MaxPerAddress
	if !full && g.Max > 0 && g.open >= g.Max {
		gaveWay = g.choose(from)
		full = gaveWay == nil
	}
	if full {
		g.refused++
		return nil, nil
	}
	if gaveWay != nil {
		g.cut++
		gaveWay.leave()
	}
	admitted = &conn{Conn: inner, gate: g, from: from, key: key}
	g.addresses[key] = from
	g.open++
	from.open++
	from.all[admitted] = struct{}{}
	admitted.sit()
	return admitted, gaveWay
}

// choose finds the connection that gives way to one from an address: it waits, its address holds more than the others would, and among equals it has
// waited longest. When none waits, one that takes nothing of its answer goes. Called with the lock held.
func (g *ConnLimiter) choose(newcomer *address) *conn {
	var chosen *conn
	var weight int
	for _, from := range g.addresses {
		first := from.first()
		if first == nil {
			continue
		}
		held := from.open
		if from == newcomer {
			held++
		}
		switch {
		case chosen == nil, held > weight:
		case held < weight, first.turn > chosen.turn:
			continue
		}
		chosen, weight = first, held
	}
	if chosen != nil {
		return chosen
	}
	now := g.Clock().UnixNano()
	for _, from := range g.addresses {
		for c := range from.all {
			if since := c.writing.Load(); since != 0 && now-since > int64(stuck) && (chosen == nil || from.open > weight) {
				chosen, weight = c, from.open
			}
		}
	}
	return chosen
}

// makeRoom closes the connection that would give way next, for lack of other resources; false when there is none.
func (g *ConnLimiter) makeRoom() bool {
	g.lock.Lock()
	chosen := g.choose(nil)
	if chosen != nil {
		g.cut++
		chosen.leave()
	}
	g.lock.Unlock()
	if chosen == nil {
		return false
	}
	_ = chosen.Conn.Close() // it is being given up
	return true
}

// first is the connection of the address that has waited longest, or nil.
func (a *address) first() *conn {
	if front := a.waiting.Front(); front != nil {
		return front.Value.(*conn)
	}
	return nil
}
