package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// inDoubt is what is not tried again by itself, though the EMR may have it.
const inDoubt = `status = 'failed' AND next_retry_at = '' AND error_code != 'entered_in_error' AND ambiguous`

// DoubtfulTransmission is one that nobody will send again, though the EMR may have it.
type DoubtfulTransmission struct {
	ClaimedTransmission
	LastAttemptedAt string `db:"last_attempted_at"`
	// UpdatedAt tells this state of the record from a later one.
	UpdatedAt string `db:"updated_at"`
}

// DoubtfulTransmissions are up to limit transmissions in doubt; those that nobody has looked at for longest come first.
func DoubtfulTransmissions(app core.App, limit int) ([]DoubtfulTransmission, error) {
	return queryAll[DoubtfulTransmission](app, "find transmissions in doubt", `SELECT `+claimed+`, last_attempted_at, updated_at
		FROM transmissions WHERE `+inDoubt+` ORDER BY updated_at LIMIT +{:limit}`, dbx.Params{"limit": limit})
}

// ClearedDoubt is what a look at the EMR makes of a transmission in doubt. The zero value notes the look alone.
type ClearedDoubt struct {
	Status string // "" keeps failed
	Known  bool   // nothing is in doubt any more
	// ErrorCode and ErrorMessage replace what is there unless "".
	ErrorCode, ErrorMessage string
	EMRID, SentHash         string // "" keeps what is there
}

// NoCorrection: the EMR's copy says what it is to say, or there is none, so that nobody has to correct it.
func (c ClearedDoubt) NoCorrection() bool {
	return c.Status == FHIRTransmitted || c.ErrorCode == NeverSent
}

// ClearDoubt stores what a look came to; not held when somebody has changed the record meanwhile.
func ClearDoubt(tx core.App, d DoubtfulTransmission, c ClearedDoubt, now time.Time) (held bool, err error) {
	n, err := updateCounted(tx, "clear doubt", Transmissions, clearing(c, now),
		dbx.NewExp("id = {:id} AND updated_at = {:seen} AND "+inDoubt, dbx.Params{"id": d.ID, "seen": d.UpdatedAt}))
	if err != nil || n == 0 || c.Status == "" || d.Form != FormReading {
		return n > 0, err
	}
	return true, SetFHIRStatus(tx, d.ObservationID, c.Status, c.EMRID, Instant(now))
}

func clearing(c ClearedDoubt, now time.Time) dbx.Params {
	set := dbx.Params{"updated_at": Instant(now)}
	if c.Known {
		set["ambiguous"] = false
	}
	if c.Status != "" {
		set["status"], set["waits_for"], set["error_code"], set["error_message"], set["diagnostics"] = c.Status, "", "", "", ""
	}
	for column, value := range map[string]string{
		"error_code": c.ErrorCode, "error_message": c.ErrorMessage, "emr_resource_id": c.EMRID, "sent_hash": c.SentHash,
	} {
		if value != "" {
			set[column] = value
		}
	}
	return set
}
