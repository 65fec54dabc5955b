package notifications

import (
	"slices"
	"time"
)

// QuietHours are when pushes are silenced: from Start, included, to End, excluded, by the clock on the person's wall.
type QuietHours struct {
	Enabled    bool     `json:"enabled"`
	Start      string   `json:"start"` // HH:MM
	End        string   `json:"end"`   // HH:MM; before Start it is that of the next day
	Exceptions []string `json:"exceptions"`
}

// Silence reports whether a push of a channel is silenced at a local time. What the wall clock shows decides, so that days with 23 or 25
// hours need no rule: an hour that is shown twice is quiet twice, and one that is left out is quiet for nobody.
// Source: docs/decisions/notifications.md, "Quiet hours".
func (q QuietHours) Silence(channel string, local time.Time) bool {
	return q.silence(channel, local.Format("15:04"))
}

func (q QuietHours) silence(channel, clock string) bool {
	if !q.Enabled || channel == Escalations || slices.Contains(q.Exceptions, channel) {
		return false
	}
	if q.Start < q.End {
		return q.Start <= clock && clock < q.End
	}
	return q.Start <= clock || clock < q.End
}
