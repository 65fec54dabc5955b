package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Snooze keeps alerts of one type about a patient quiet for a while.
type Snooze struct{ core.BaseRecordProxy }

// NewSnooze returns an unsaved snooze with the next number.
func NewSnooze(tx core.App, patientID, alertType string, reason phi.Text, until time.Time, by string, now time.Time) (*Snooze, error) {
	s, err := numbered[Snooze](tx, Snoozes)
	if err == nil {
		s.Load(map[string]any{
			"patient": patientID, "type": alertType, "reason": reason.Reveal(), "ends_at": Instant(until), "created_by": by, "created_at": Instant(now),
		})
	}
	return s, err
}

// FindSnooze finds one snooze of a patient.
func FindSnooze(app core.App, patientID string, number int64) (*Snooze, error) {
	return findWhole[Snooze](app, Snoozes, dbx.HashExp{"id": NumberID(number), "patient": patientID})
}

// PageOfSnoozes returns a page of a patient's snoozes, newest first, and how many there are in all; current keeps those in
// force, or those that are over.
func PageOfSnoozes(app core.App, patientID string, current *bool, now time.Time, offset, limit int) ([]*Snooze, int, error) {
	where := Conditions{}.Equal("patient", patientID)
	if current != nil {
		inForce := "(ended_at = '' AND ends_at > {:now})"
		if !*current {
			inForce = "NOT " + inForce
		}
		where = append(where, dbx.NewExp(inForce, dbx.Params{"now": Instant(now)}))
	}
	return pageOf[Snooze](app, Snoozes, Every(where), []string{"created_at DESC", "id DESC"}, offset, limit)
}

// EndSnoozesOf ends what keeps a type of alerts about a patient quiet. What was over before ended by itself.
func EndSnoozesOf(tx core.App, patientID, alertType, by, system string, now time.Time) error {
	return exec(tx, "end snoozes", `UPDATE snoozes SET ended_at = min(ends_at, {:now}), ended_by = CASE WHEN ends_at <= {:now} THEN {:system} ELSE {:by} END
		WHERE patient = {:patient} AND type = {:type} AND ended_at = ''`,
		dbx.Params{"now": Instant(now), "patient": patientID, "type": alertType, "by": by, "system": system})
}

// SetIncludeCritical keeps critical alerts quiet too.
func (s *Snooze) SetIncludeCritical(include bool) { s.Set("include_critical", include) }

// End stores that somebody ended it before its time.
func (s *Snooze) End(tx core.App, by string, now time.Time) error {
	stamp(s, "ended", by, now)
	return Update(tx, s.ProxyRecord(), "ended_at", "ended_by")
}

// InForce reports whether it keeps alerts quiet at a time.
func (s *Snooze) InForce(at time.Time) bool {
	return s.GetString("ended_at") == "" && Instant(at) < s.GetString("ends_at")
}

func (s *Snooze) Number() int64         { return Number(s.Id) }
func (s *Snooze) PatientID() string     { return s.GetString("patient") }
func (s *Snooze) Type() string          { return s.GetString("type") }
func (s *Snooze) IncludeCritical() bool { return s.GetBool("include_critical") }
func (s *Snooze) Reason() phi.Text      { return phi.Text(s.GetString("reason")) }
func (s *Snooze) EndsAt() time.Time     { return ParseInstant(s.GetString("ends_at")) }
func (s *Snooze) CreatedBy() string     { return s.GetString("created_by") }
func (s *Snooze) CreatedAt() time.Time  { return ParseInstant(s.GetString("created_at")) }
func (s *Snooze) EndedAt() time.Time    { return ParseInstant(s.GetString("ended_at")) }
func (s *Snooze) EndedBy() string       { return s.GetString("ended_by") }
