package realtime

import "github.com/pocketbase/pocketbase/core"

// Start and Round are one turn of Run each, without the clock.
func (p *Publisher) Start(app core.App) error { return p.start(app) }

// Round tells everyone what has changed.
func (p *Publisher) Round(app core.App) (int, error) { return p.round(app) }

// Followed is how many streams the publisher looks after.
func (p *Publisher) Followed() int { return len(p.open()) }

// Patience is how long a stream may be open without a subscription.
const Patience = patience

// Backlog is how many messages may wait for a reader.
const Backlog = backlog
