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

// stalledWrite is how long a response write may block before the connection can be evicted.
const stalledWrite = 5 * time.Second

// conn is an admitted connection.
type conn struct {
	net.Conn
	limiter *ConnLimiter
	address *addressState
	key     string

	writing atomic.Int64 // start of the current write (Unix nanoseconds), 0 if none

	// Guarded by limiter.lock.
	waitingElement *list.Element // position in address.waiting; nil while a request is served
	waitOrder      uint64        // global order of entering waiting
	serving        int           // complete requests being served
	isReleased     bool
}

// release removes the connection from the counts. The caller holds the lock.
func (c *conn) release() {
	if c.isReleased {
		return
	}
	c.isReleased = true
	c.dequeue()
	c.limiter.open--
	c.address.open--
	delete(c.address.conns, c)
	if c.address.open == 0 && c.address.requests == 0 {
		delete(c.limiter.addresses, c.key)
	}
}

// enqueue appends the connection to those that wait for their client; dequeue removes it. The caller holds the lock.
func (c *conn) enqueue() {
	if c.waitingElement == nil && !c.isReleased {
		c.limiter.lastWaitOrder++
		c.waitOrder, c.waitingElement = c.limiter.lastWaitOrder, c.address.waiting.PushBack(c)
	}
}

func (c *conn) dequeue() {
	if c.waitingElement != nil {
		c.address.waiting.Remove(c.waitingElement)
		c.waitingElement = nil
	}
}

// withLock runs do under the limiter's lock. It does nothing for a nil conn, one that the limiter did not accept.
func (c *conn) withLock(do func()) {
	if c == nil {
		return
	}
	c.limiter.lock.Lock()
	defer c.limiter.lock.Unlock()
	do()
}

// markWaiting records that the server waits for the client's next request.
func (c *conn) markWaiting() { c.withLock(c.enqueue) }

// markServing records that a request is complete and being served, until markServed.
func (c *conn) markServing() {
	c.withLock(func() {
		c.serving++
		c.dequeue()
	})
}

// markServed ends markServing. Over HTTP/2, other requests on the connection may still be incomplete.
func (c *conn) markServed(more bool) {
	c.withLock(func() {
		c.serving--
		if more && c.serving == 0 {
			c.enqueue()
		}
	})
}

// beginRequest counts a request until endRequest. The limit per address applies to concurrent requests, too, because over HTTP/2 one connection
// can carry a hundred.
func (c *conn) beginRequest() (admitted bool) {
	if c == nil {
		return true
	}
	g := c.limiter
	g.lock.Lock()
	defer g.lock.Unlock()
	if !c.address.isExempt && g.MaxPerAddress > 0 && c.address.requests >= g.MaxPerAddress {
		g.refused++
		return false
	}
	c.address.requests++
	return true
}

func (c *conn) endRequest() {
	c.withLock(func() {
		c.address.requests--
		if c.address.open == 0 && c.address.requests == 0 && c.limiter.addresses[c.key] == c.address {
			delete(c.limiter.addresses, c.key)
		}
	})
}

// Write records how long the client blocks the write.
func (c *conn) Write(p []byte) (int, error) {
	c.writing.Store(c.limiter.Clock().UnixNano())
	defer c.writing.Store(0)
	return c.Conn.Write(p)
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.withLock(c.release)
	return c.Conn.Close()
}

// CloseWrite lets the client read the response to its end before the connection closes.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// listener returns the connections that the limiter admits.
type listener struct {
	net.Listener
	limiter *ConnLimiter
	isPlain bool
}

// Listen limits the connections of a listener before it reads from them. A refused client receives a 503 over plain HTTP only; a TLS handshake
// would cost more than the refusal saves.
func (cl *ConnLimiter) Listen(inner net.Listener, tls bool) net.Listener {
	return &listener{Listener: inner, limiter: cl, isPlain: !tls}
}

// Accept implements [net.Listener]. It never blocks on the limits.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			if (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && l.limiter.evictOne() {
				continue
			}
			return nil, err
		}
		admitted, evicted := l.limiter.admit(inner)
		if evicted != nil {
			_ = evicted.Conn.Close() // the error does not matter for an evicted connection
		}
		if admitted != nil {
			return admitted, nil
		}
		l.refuse(inner)
	}
}

// The refusal bypasses the server, so it includes the security headers of every response. Source: docs/decisions/security.md, "Security
// headers".
const refusalBody = `{"detail":"Too many connections are open. Try again later.","code":"overloaded"}`

var refusalResponse = fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 10\r\nContent-Type: application/json\r\n"+
	"Strict-Transport-Security: max-age=31536000; includeSubDomains\r\nContent-Length: %d\r\n\r\n%s", len(refusalBody), refusalBody)

// refuse closes a connection, with a 503 over plain HTTP. The response fits into an empty send buffer; the deadline is a precaution.
func (l *listener) refuse(c net.Conn) {
	if l.isPlain {
		_ = c.SetWriteDeadline(l.limiter.Clock().Add(10 * time.Millisecond))
		_, _ = c.Write(refusalResponse) // the connection closes in any case
	}
	_ = c.Close()
}

type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connBelowTLS(c))
}

func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

// connBelowTLS returns the conn below TLS, or nil if the limiter did not accept the connection.
func connBelowTLS(c net.Conn) *conn {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	found, _ := c.(*conn)
	return found
}
