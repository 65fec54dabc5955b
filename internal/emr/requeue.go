package emr

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// DeadLetterFilter selects dead letters; zero values do not restrict.
type DeadLetterFilter = collections.DeadLetterFilter

// requeueBatch bounds one transaction, so that readings are stored in between.
const requeueBatch = 200

// CountRequeueable counts what [Requeue] would requeue.
func CountRequeueable(app core.App, f DeadLetterFilter) (int, error) {
	return collections.CountRequeueable(app, f)
}

// Requeue requeues dead letters, oldest first, each with all its retries, and returns how many. The worker sends them like new deliveries:
// paced, and after a search of the EMR where an earlier attempt may have arrived. Requeue uses short transactions, each with an audit
// entry; after an interruption a second call continues.
// Source: docs/decisions/transmissions.md, "Requeue".
func Requeue(ctx context.Context, app core.App, f DeadLetterFilter, by audit.Actor, now time.Time) (requeued int, err error) {
	total, err := CountRequeueable(app, f)
	for err == nil && requeued < total { // later dead letters are left for the next call
		if err = ctx.Err(); err != nil {
			break
		}
		var batch []string
		err = app.RunInTransaction(func(tx core.App) (err error) {
			if batch, err = collections.RequeueDeadLetters(tx, f, min(requeueBatch, total-requeued), now); err != nil || len(batch) == 0 {
				return err
			}
			return audit.Append(tx, audit.Entry{
				Event: audit.EMRRequeue, Actor: by, ResourceType: audit.ResourceTransmission, PatientID: f.PatientID,
				Changes: audit.Changes{"transmissions": {New: batch}, "error_code": {New: f.ErrorCode}},
			}, now)
		})
		if err != nil || len(batch) == 0 {
			break
		}
		requeued += len(batch)
	}
	return requeued, err
}

// Retry queues one failed delivery now, with all its retries. Source: docs/decisions/transmissions.md, "Requeue".
func (w *Worker) Retry(app core.App, id string, by audit.Actor, now time.Time) error {
	err := app.RunInTransaction(func(tx core.App) error { return retry(tx, id, by, now) })
	if err == nil {
		w.Wake()
	}
	return err
}

func retry(tx core.App, id string, by audit.Actor, now time.Time) error {
	found, err := collections.FindTransmission(tx, id)
	if err != nil {
		return fault.OrMissing(err)
	}
	if found.Status() == collections.FHIRFailed && found.ErrorCode() == CodeOutcomeUnknown {
		return fault.State("outcome_unknown", "The EMR may have it. State first whether it is there.")
	}
	done, err := collections.RetryTransmission(tx, id, now)
	if err != nil {
		return err
	}
	if !done {
		return fault.State("invalid_state", "Only a failed delivery of a trusted reading that waits for nothing else can be tried again.")
	}
	return audit.Append(tx, audit.Entry{
		Event: audit.EMRRequeue, Actor: by, ResourceType: audit.ResourceTransmission, ResourceID: id, PatientID: found.PatientID(),
		Changes: audit.Changes{"transmissions": {New: []string{id}}, "error_code": {New: found.ErrorCode()}},
	}, now)
}

// days matches the days at the start of a duration, which time.ParseDuration does not support.
var days = regexp.MustCompile(`^(\d{1,5})d`)

// ParseSince parses a start time: a duration before now, a date, which begins at midnight in the zone, or a date-time.
func ParseSince(text string, zone *time.Location, now time.Time) (since time.Time, ok bool) {
	text = strings.TrimSpace(text)
	if _, err := validate.ParseDate(text); err == nil {
		return collections.ParseDay(text, zone).UTC(), true
	}
	if at, err := validate.ParseInstant(text); err == nil {
		return at, true
	}
	ago := time.Duration(0)
	if m := days.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1]) // at most five digits
		ago, text = time.Duration(n)*24*time.Hour, strings.TrimPrefix(text, m[0])
		if text == "" {
			text = "0"
		}
	}
	rest, err := time.ParseDuration(text)
	if ago += rest; err != nil || rest < 0 || ago <= 0 {
		return time.Time{}, false
	}
	return now.Add(-ago), true
}
