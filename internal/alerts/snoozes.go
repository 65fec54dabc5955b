package alerts

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/phi"
)

// How long known breaches can be kept quiet. Source: docs/decisions/alerts.md, "Snooze".
const (
	longestSnooze         = 30 * 24 * time.Hour
	longestCriticalSnooze = 4 * time.Hour
)

// Snooze keeps alerts of one type quiet until it ends. They are stored and counted all the same.
type Snooze struct {
	Type string
	// IncludeCritical keeps critical alerts quiet too.
	IncludeCritical bool
	EndsAt          time.Time
}

// Covers reports whether nobody is told of an alert at a time.
func (s Snooze) Covers(alertType string, level Level, at time.Time) bool {
	return s.Type == alertType && at.Before(s.EndsAt) && (level != Critical || s.IncludeCritical)
}

// SnoozeBody is the body of a request to snooze.
type SnoozeBody struct {
	Type            input.String  `json:"type"`
	Reason          input.String  `json:"reason"`
	EndsAt          input.String  `json:"ends_at"`
	IncludeCritical input.Boolean `json:"include_critical"`
}

// SnoozeDraft is a body that was found valid.
type SnoozeDraft struct {
	Snooze
	Reason phi.Text // 1 to 500 characters
}

var snoozable = []string{TypeBloodPressure, TypePulse, TypeWeight, TypePulseOximetry, TypeBloodGlucose}

// Read checks the body.
func (b SnoozeBody) Read(c *input.Checks, now time.Time) (draft SnoozeDraft) {
	draft.Type = c.Text("type", b.Type, input.Required(0).OneOf(snoozable...))
	draft.Reason = phi.Text(c.Text("reason", b.Reason, input.Required(500).Multiline()))
	draft.EndsAt = c.Instant("ends_at", b.EndsAt, true)
	if critical := c.Boolean("include_critical", b.IncludeCritical, false); critical != nil {
		draft.IncludeCritical = *critical
	}
	switch until := draft.EndsAt.Sub(now); {
	case draft.EndsAt.IsZero():
	case until <= 0:
		c.Reject("ends_at", "Must be in the future.")
	case draft.IncludeCritical && until > longestCriticalSnooze:
		c.Reject("ends_at", "Critical alerts can be snoozed for 4 hours at most.")
	case until > longestSnooze:
		c.Reject("ends_at", "Alerts can be snoozed for 30 days at most.")
	}
	return draft
}

// PageOfSnoozes lists the snoozes of a patient, newest first; current keeps those in force, or those that are over.
func PageOfSnoozes(app core.App, patientID string, current *bool, now time.Time, offset, limit int) (page []*core.Record, total int, err error) {
	conditions := collections.Conditions{}.Equal("patient", patientID)
	if current != nil {
		inForce := "(ended_at = '' AND ends_at > {:now})"
		if !*current {
			inForce = "NOT " + inForce
		}
		conditions = append(conditions, dbx.NewExp(inForce, dbx.Params{"now": collections.Instant(now)}))
	}
	return conditions.Page(app, collections.Snoozes, "created_at DESC, id DESC", offset, limit)
}

// StartSnooze stores a snooze in the caller's transaction. It takes the place of one of the same type, which ends.
func StartSnooze(tx core.App, patientID string, draft SnoozeDraft, by audit.Actor, now time.Time) (*core.Record, error) {
	at := collections.Instant(now)
	_, err := tx.DB().NewQuery(`UPDATE snoozes SET ended_at = min(ends_at, {:now}), ended_by = CASE WHEN ends_at <= {:now} THEN {:system} ELSE {:by} END
		WHERE patient = {:patient} AND type = {:type} AND ended_at = ''`).
		Bind(dbx.Params{"now": at, "patient": patientID, "type": draft.Type, "by": authorOf(by), "system": System}).Execute()
	if err != nil {
		return nil, fmt.Errorf("end the snooze before: %w", err)
	}
	record, err := collections.New(tx, collections.Snoozes)
	if err != nil {
		return nil, err
	}
	if record.Id, err = collections.NextID(tx, collections.Snoozes); err != nil {
		return nil, err
	}
	for column, value := range map[string]any{
		"patient": patientID, "type": draft.Type, "include_critical": draft.IncludeCritical, "reason": draft.Reason.Reveal(),
		"ends_at": collections.Instant(draft.EndsAt), "created_by": authorOf(by), "created_at": at,
	} {
		record.Set(column, value)
	}
	if err := collections.Insert(tx, record); err != nil {
		return nil, err
	}
	return record, audit.Append(tx, audit.Entry{
		Event: audit.SnoozeCreate, Actor: by, ResourceType: "Snooze", ResourceID: strconv.FormatInt(collections.Number(record.Id), 10),
		PatientID: patientID, Reason: draft.Reason, Changes: audit.Changes{
			"type": {New: draft.Type}, "ends_at": {New: input.FormatInstant(draft.EndsAt)}, "include_critical": {New: draft.IncludeCritical},
		},
	}, now)
}

// EndSnooze ends a snooze of a patient before its time, in the caller's transaction; one that is over is an invalid_state fault.
func EndSnooze(tx core.App, patientID string, number int64, by audit.Actor, now time.Time) (*core.Record, error) {
	record, err := tx.FindRecordById(collections.Snoozes, collections.NumberID(number))
	if collections.Missing(err) || (err == nil && record.GetString("patient") != patientID) {
		return nil, fault.Missing()
	}
	if err != nil {
		return nil, fmt.Errorf("find snooze: %w", err)
	}
	if err := collections.Readable(record); err != nil {
		return nil, err
	}
	if !SnoozeInForce(record, now) {
		return nil, fault.State("invalid_state", "The snooze is over already.")
	}
	record.Set("ended_at", collections.Instant(now))
	record.Set("ended_by", authorOf(by))
	if err := collections.Update(tx, record, "ended_at", "ended_by"); err != nil {
		return nil, err
	}
	return record, audit.Append(tx, audit.Entry{
		Event: audit.SnoozeEnd, Actor: by, ResourceType: "Snooze", ResourceID: strconv.FormatInt(number, 10), PatientID: patientID,
	}, now)
}

// SnoozeInForce reports whether a stored snooze keeps alerts quiet at a time.
func SnoozeInForce(record *core.Record, at time.Time) bool {
	return record.GetString("ended_at") == "" && collections.Instant(at) < record.GetString("ends_at")
}
