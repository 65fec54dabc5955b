package realtime

import "github.com/pocketbase/pocketbase/core"

// Start and Round run parts of Run without the clock.
func (p *Publisher) Start(app core.App) error { return p.start(app) }

// Round sends what has changed.
func (p *Publisher) Round(app core.App) (int, error) { return p.round(app) }

// OpenStreams counts the authenticated streams.
func (p *Publisher) OpenStreams() int { return len(p.openStreams()) }

// SubscribeTimeout is how long a stream may be open without a subscription.
const SubscribeTimeout = subscribeTimeout

// Backlog is how many messages may wait for a reader.
const Backlog = backlog
