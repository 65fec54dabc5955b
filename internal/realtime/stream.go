package realtime

import (
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/tools/subscriptions"
)

// backlog is how many messages may wait for a reader. At the publisher's quickest that is a dozen seconds, longer than a write
// to a stalled connection is allowed to take.
const backlog = 256

// patience is how long a stream may be open without a subscription. Source: docs/decisions/limits.md, "Streams without a subscription".
const patience = 10 * time.Second

// Stream is a client of PocketBase's broker that whoever sends never waits for, and that gets messages in the order in which
// they were sent. One that falls too far behind is cut: it connects again, and fetches what it missed.
type Stream struct {
	subscriptions.Client
	queue chan subscriptions.Message

	lock       sync.Mutex
	closed     bool
	token      string
	unasked    *time.Timer // runs while nothing is subscribed
	ends       *time.Timer // runs while a superuser's token is good
	subscribed func()
}

// NewStream makes a stream of the client that PocketBase has made for a connection. It ends unless something is subscribed in time; subscribed is
// told when something is.
func NewStream(client subscriptions.Client, subscribed func()) *Stream {
	s := &Stream{Client: client, queue: make(chan subscriptions.Message, backlog), subscribed: subscribed}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.unasked = time.AfterFunc(patience, s.endUnasked)
	return s
}

func (s *Stream) endUnasked() {
	if len(s.Subscriptions()) == 0 {
		s.Discard()
	}
}

// EndsIn ends the stream after some time, counted anew at each call.
func (s *Stream) EndsIn(d time.Duration) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.ends != nil {
		s.ends.Stop()
	}
	s.ends = time.AfterFunc(d, s.Discard)
}

// Subscribe implements [subscriptions.Client].
func (s *Stream) Subscribe(topics ...string) {
	s.Client.Subscribe(topics...)
	if len(s.Subscriptions()) > 0 {
		s.unasked.Stop()
		s.subscribed()
	}
}

// Unsubscribe implements [subscriptions.Client].
func (s *Stream) Unsubscribe(topics ...string) {
	asked := len(s.Subscriptions()) > 0
	s.Client.Unsubscribe(topics...)
	if asked && len(s.Subscriptions()) == 0 && !s.IsDiscarded() { // who never asked for anything gains no time by asking for nothing
		s.unasked.Reset(patience)
	}
}

// Channel implements [subscriptions.Client].
func (s *Stream) Channel() chan subscriptions.Message { return s.queue }

// Send implements [subscriptions.Client]; it never blocks.
func (s *Stream) Send(m subscriptions.Message) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.closed {
		return
	}
	select {
	case s.queue <- m:
	default:
		s.close()
	}
}

// Discard implements [subscriptions.Client]: it ends the connection once what waits is written.
func (s *Stream) Discard() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.close()
}

// IsDiscarded implements [subscriptions.Client].
func (s *Stream) IsDiscarded() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.closed
}

func (s *Stream) close() {
	if !s.closed {
		s.closed = true
		s.unasked.Stop()
		if s.ends != nil {
			s.ends.Stop()
		}
		close(s.queue)
		s.Client.Discard()
	}
}

// cut ends the connection of a reader who may hear no more: what waits is not written.
func (s *Stream) cut() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for {
		select {
		case _, open := <-s.queue:
			if open {
				continue
			}
			return
		default:
			s.close()
			return
		}
	}
}

// readBy notes the access token that the stream was subscribed with.
func (s *Stream) readBy(token string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.token = token
}

func (s *Stream) reader() (token string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.token
}
