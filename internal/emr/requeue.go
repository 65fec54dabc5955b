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
	"github.com/vigilhealth/vigil/internal/validate"
)

// GivenUp says which of the deliveries that were given up; zero values do not narrow.
type GivenUp = collections.DeadLetterFilter

// requeuedAtOnce bounds what one transaction queues again, so that readings are stored in between.
const requeuedAtOnce = 200

// CountGivenUp counts what [Requeue] would queue again.
func CountGivenUp(app core.App, f GivenUp) (int, error) { return collections.CountRequeueable(app, f) }

// Requeue queues again what was given up, the oldest first, each with all its retries before it, and says how many these are. Whoever sends them
// finds them as it finds what is new: at its pace, and after a look at the EMR where an earlier send may have arrived. It works in short
// transactions, each with its line in the audit trail; one that is interrupted has done a part, and goes on when it is asked again.
// Source: docs/decisions/transmissions.md, "Requeue".
func Requeue(ctx context.Context, app core.App, f GivenUp, by audit.Actor, now time.Time) (requeued int, err error) {
	total, err := CountGivenUp(app, f)
	for err == nil && requeued < total { // what is given up meanwhile is for the next time
		if err = ctx.Err(); err != nil {
			break
		}
		var some []string
		err = app.RunInTransaction(func(tx core.App) (err error) {
			if some, err = collections.RequeueDeadLetters(tx, f, min(requeuedAtOnce, total-requeued), now); err != nil || len(some) == 0 {
				return err
			}
			return audit.Append(tx, audit.Entry{
				Event: audit.EMRRequeue, Actor: by, ResourceType: audit.ResourceTransmission, PatientID: f.PatientID,
				Changes: audit.Changes{"transmissions": {New: some}, "error_code": {New: f.ErrorCode}},
			}, now)
		})
		if err != nil || len(some) == 0 {
			break
		}
		requeued += len(some)
	}
	return requeued, err
}

// days is the part of a duration that Go's own have no unit for.
var days = regexp.MustCompile(`^(\d{1,5})d`)

// ParseSince reads since when: a duration before now, a date, which begins in the zone, or a date-time.
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
		n, _ := strconv.Atoi(m[1]) // digits, and few
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
