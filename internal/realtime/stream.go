package realtime

import (
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/tools/subscriptions"
)

// backlog is how many messages may wait for a reader. At the publisher's fastest that is about 12 seconds, longer than a write to a stalled
// connection may take.
const backlog = 256

// subscribeTimeout is how long a stream may be open without a subscription. Source: docs/decisions/limits.md, "Streams without a
// subscription".
const subscribeTimeout = 10 * time.Second

// Stream is a client of PocketBase's broker that never blocks the sender and delivers messages in order. A stream that falls too far behind
// is closed; its reader reconnects and fetches the list.
type Stream struct {
	subscriptions.Client
	queue chan subscriptions.Message

	lock         sync.Mutex
	closed       bool
	token        string
	unsubscribed *time.Timer // runs without a subscription
	ends         *time.Timer // runs while a superuser's token is valid
	subscribed   func()
}

// NewStream wraps a client of PocketBase's broker. The stream ends unless a topic is subscribed in time; subscribed is called when one is.
func NewStream(client subscriptions.Client, subscribed func()) *Stream {
	s := &Stream{Client: client, queue: make(chan subscriptions.Message, backlog), subscribed: subscribed}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.unsubscribed = time.AfterFunc(subscribeTimeout, s.endUnsubscribed)
	return s
}

func (s *Stream) endUnsubscribed() {
	if len(s.Subscriptions()) == 0 {
		s.Discard()
	}
}

// EndsIn ends the stream after a time, restarted by each call.
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
		s.unsubscribed.Stop()
		s.subscribed()
	}
}

// Unsubscribe implements [subscriptions.Client].
func (s *Stream) Unsubscribe(topics ...string) {
	asked := len(s.Subscriptions()) > 0
	s.Client.Unsubscribe(topics...)
	if asked && len(s.Subscriptions()) == 0 && !s.IsDiscarded() { // an empty subscription does not extend the time
		s.unsubscribed.Reset(subscribeTimeout)
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

// Discard implements [subscriptions.Client]: it ends the connection after the queued messages are written.
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
		s.unsubscribed.Stop()
		if s.ends != nil {
			s.ends.Stop()
		}
		close(s.queue)
		s.Client.Discard()
	}
}

// cutOff ends the connection of a reader without permission: queued messages are dropped.
func (s *Stream) cutOff() {
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

// setToken stores the access token of the subscription.
func (s *Stream) setToken(token string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.token = token
}

func (s *Stream) accessToken() (token string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.token
}
