package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// TransmissionAttempt is one request of a transmission that left for the EMR.
type TransmissionAttempt struct {
	StartedAt  string `db:"started_at"`
	DurationMS int64  `db:"duration_ms"`
	// StatusCode is the HTTP status of the EMR; nil when it did not answer.
	StatusCode *int   `db:"status_code"`
	RequestID  string `db:"request_id"`
	ErrorCode  string `db:"error_code"` // "" on success
}

// InsertTransmissionAttempt adds a line to the ledger of a transmission.
func InsertTransmissionAttempt(tx core.App, transmissionID string, a TransmissionAttempt) error {
	return exec(tx, "record attempt", `INSERT INTO transmission_attempts
			(transmission, started_at, duration_ms, status_code, request_id, error_code)
		VALUES ({:transmission}, {:started}, {:duration}, {:status}, {:request}, {:code})`, dbx.Params{
		"transmission": transmissionID, "started": a.StartedAt, "duration": a.DurationMS,
		"status": a.StatusCode, "request": a.RequestID, "code": a.ErrorCode,
	})
}

// TransmissionLedger reads the attempts of a transmission, oldest first. There may be many: six deliveries of up to four
// sends each, and those asked for by hand.
func TransmissionLedger(app core.App, transmissionID string) ([]TransmissionAttempt, error) {
	return queryAll[TransmissionAttempt](app, "read attempts", `SELECT started_at, duration_ms, status_code, request_id, error_code FROM transmission_attempts
		WHERE transmission = {:id} ORDER BY started_at, rowid`,
		dbx.Params{"id": transmissionID})
}
