package ratelimit

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// stuck is how long a client may take nothing of an answer before its connection may give way to another.
const stuck = 5 * time.Second

// conn is a connection that has a place.
type conn struct {
	net.Conn
	gate *ConnLimiter
	from *address
	key  string

	writing atomic.Int64 // since when a write is under way, 0 for none

	// Under the gate's lock.
	seat *list.Element // among those that wait for their client; nil while a request is served
	turn uint64        // order of sitting down
	busy int           // complete requests that are served
	gone bool
}

// leave gives the place back. Called with the gate's lock held.
func (c *conn) leave() {
	if c.gone {
		return
	}
	c.gone = true
	c.stand()
	c.gate.open--
	c.from.open--
	delete(c.from.all, c)
	if c.from.open == 0 && c.from.requests == 0 {
		delete(c.gate.addresses, c.key)
	}
}

// sit puts the connection last among those that wait, stand takes it out. Called with the gate's lock held.
func (c *conn) sit() {
	if c.seat == nil && !c.gone {
		c.gate.turn++
		c.turn, c.seat = c.gate.turn, c.from.waiting.PushBack(c)
	}
}

func (c *conn) stand() {
	if c.seat != nil {
		c.from.waiting.Remove(c.seat)
		c.seat = nil
	}
}

// locked does something under the gate's lock; nothing to a connection that did not come through a gate.
func (c *conn) locked(do func()) {
	if c == nil {
		return
	}
	c.gate.lock.Lock()
	defer c.gate.lock.Unlock()
	do()
}

// wait says that the client has the word.
func (c *conn) wait() { c.locked(c.sit) }

// serve says that a request is complete and being served, until served is called.
func (c *conn) serve() {
	c.locked(func() {
		c.busy++
		c.stand()
	})
}

// served ends what serve began. Over HTTP/2 the others on the connection may still be incomplete.
func (c *conn) served(more bool) {
	c.locked(func() {
		c.busy--
		if more && c.busy == 0 {
			c.sit()
		}
	})
}

// begin counts a request under way, ended by end. An address has no more of them than it may have connections: over HTTP/2 one of these would
// otherwise do for a hundred.
func (c *conn) begin() (admitted bool) {
	if c == nil {
		return true
	}
	g := c.gate
	g.lock.Lock()
	defer g.lock.Unlock()
	if !c.from.exempt && g.MaxPerAddress > 0 && c.from.requests >= g.MaxPerAddress {
		g.refused++
		return false
	}
	c.from.requests++
	return true
}

func (c *conn) end() {
	c.locked(func() {
		c.from.requests--
		if c.from.open == 0 && c.from.requests == 0 && c.gate.addresses[c.key] == c.from {
			delete(c.gate.addresses, c.key)
		}
	})
}

// Write notes how long the client makes it wait.
func (c *conn) Write(p []byte) (int, error) {
	c.writing.Store(c.gate.Clock().UnixNano())
	defer c.writing.Store(0)
	return c.Conn.Write(p)
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.locked(c.leave)
	return c.Conn.Close()
}

// CloseWrite lets the client read its answer to the end before the connection is closed.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// listener hands out the connections that find a place.
type listener struct {
	net.Listener
	gate  *ConnLimiter
	plain bool
}

// Listen limits a listener's connections before anything is read of them. Whoever is refused over plain HTTP is told so; a TLS handshake would cost
// more than the refusal saves.
func (g *ConnLimiter) Listen(inner net.Listener, tls bool) net.Listener {
	return &listener{Listener: inner, gate: g, plain: !tls}
}

// Accept implements [net.Listener]; it never waits for a place.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			if (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && l.gate.makeRoom() {
				continue
			}
			return nil, err
		}
		admitted, gaveWay := l.gate.admit(inner)
		if gaveWay != nil {
			_ = gaveWay.Conn.Close() // it is being given up
		}
		if admitted != nil {
			return admitted, nil
		}
		l.turnAway(inner)
	}
}

// The answer is written past the server, so it has the header of every other one here. Source: docs/decisions/security.md, "Security headers".
const refusal = `{"detail":"Too many connections are open. Try again later.","code":"overloaded"}`

var turnedAway = fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 10\r\nContent-Type: application/json\r\n"+
	"Strict-Transport-Security: max-age=31536000; includeSubDomains\r\nContent-Length: %d\r\n\r\n%s", len(refusal), refusal)

// turnAway refuses a connection. So little fits into an empty buffer at once; the deadline is for what we did not think of.
func (l *listener) turnAway(c net.Conn) {
	if l.plain {
		_ = c.SetWriteDeadline(l.gate.Clock().Add(10 * time.Millisecond))
		_, _ = c.Write(turnedAway) // whoever does not hear it finds the connection closed
	}
	_ = c.Close()
}

type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, ours(c))
}

func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

// ours is the connection below TLS, or nil when it did not come through a gate.
func ours(c net.Conn) *conn {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	found, _ := c.(*conn)
	return found
}
