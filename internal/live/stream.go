package live

import (
	"sync"

	"github.com/pocketbase/pocketbase/tools/subscriptions"
)

// backlog is how many messages may wait for a reader. At the publisher's quickest that is a dozen seconds, longer than a write
// to a stalled connection is allowed to take.
const backlog = 256

// Stream is a client of PocketBase's broker that whoever sends never waits for, and that gets messages in the order in which
// they were sent. One that falls too far behind is cut: it connects again, and fetches what it missed.
type Stream struct {
	subscriptions.Client
	queue chan subscriptions.Message

	lock   sync.Mutex
	closed bool
	token  string
}

// NewStream makes a stream of the client that PocketBase has made for a connection.
func NewStream(client subscriptions.Client) *Stream {
	return &Stream{Client: client, queue: make(chan subscriptions.Message, backlog)}
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
