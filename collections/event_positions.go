package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// EventPosition is how far the practice has stored the events of a stream: all up to a sequence, which the stream stored at PublishedAt.
type EventPosition struct {
	Sequence    uint64
	PublishedAt time.Time
}

// FindEventPosition returns the position in a stream; zero if no event was stored.
func FindEventPosition(app core.App, stream string) (p EventPosition, err error) {
	var at string
	err = app.DB().NewQuery(`SELECT sequence, published_at FROM event_positions WHERE id = {:stream}`).Bind(dbx.Params{"stream": stream}).Row(&p.Sequence, &at)
	p.PublishedAt = ParseInstant(at)
	return p, wrap(IgnoreNotFound(err), "find the position in the event stream")
}

// AdvanceEventPosition moves the position in a stream forward, never back.
func AdvanceEventPosition(tx core.App, stream string, p EventPosition) error {
	return exec(tx, "store the position in the event stream", `INSERT INTO event_positions (id, sequence, published_at) VALUES ({:stream}, {:sequence}, {:at})
		ON CONFLICT (id) DO UPDATE SET sequence = MAX(sequence, excluded.sequence), published_at = MAX(published_at, excluded.published_at)`,
		dbx.Params{"stream": stream, "sequence": p.Sequence, "at": FormatInstant(p.PublishedAt)})
}
