package ingest

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// readingKey is equal for equal readings: same patient, kind, second, device and values, from any source. It only distinguishes one
// patient's readings of a kind in one second, so 72 bits are plenty; it is short because every reading takes a page of its own in the
// index. Source: docs/decisions/observations.md, "Duplicate readings outside the webhook".
func readingKey(patientID string, r vitals.Reading) string {
	for _, m := range vitals.Qualifiers {
		if m.IsFlag() && r.Qualifier(m) == vitals.No {
			r.SetQualifier(m, "") // a missing flag and "no" mean the same
		}
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{
		patientID, r.MeasuredAt.UTC().Truncate(time.Second).Format(time.RFC3339), r.DeviceID, r.ValuesKey(),
	}, "|")))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// findStored returns the observation that has the reading's key.
func (o Observation) findStored(app core.App) (*core.Record, error) {
	return collections.FindObservationByReading(app, collections.ReadingKey{
		PatientID: o.PatientID, Kind: string(o.Reading.Kind), MeasuredAt: o.Reading.MeasuredAt, Key: o.readingKey,
	})
}

// insertObservationSQL inserts a row unless the patient already has the reading, measured within the same second. OR FAIL changes nothing
// for one row, but lets SQLite skip the statement journal that the triggers of the change feed would require.
var insertObservationSQL = func() string {
	var names, values []string
	number := map[string]string{}
	for i, c := range (Observation{}).cells() {
		names, values = append(names, c.column), append(values, fmt.Sprintf("?%d", i+1))
		number[c.column] = values[i]
	}
	second := fmt.Sprintf("?%d", len(values)+1) // a call of substr could fail, which would require the journal
	return "INSERT OR FAIL INTO observations (" + strings.Join(names, ", ") + ") SELECT " + strings.Join(values, ", ") +
		" WHERE NOT EXISTS (SELECT 1 FROM observations WHERE patient = " + number["patient"] + " AND observation_type = " + number["observation_type"] +
		" AND measured_at BETWEEN " + second + " AND " + second + " || '999999Z' AND " + collections.ReadingKeyCondition(number["reading_key"]) + ")" +
		" ON CONFLICT DO NOTHING"
}()

// insertObservation stores the observation and reports false if a unique key exists already.
func insertObservation(tx core.App, o Observation) (stored bool, err error) {
	cells := o.cells()
	values := make([]any, len(cells)+1)
	for i, c := range cells {
		values[i] = c.value
	}
	at := collections.FormatInstant(o.Reading.MeasuredAt)
	values[len(cells)] = at[:min(len(at), len("2026-01-15T13:45:00."))] // sorts before all fractions of the second
	n, err := collections.Write(tx, insertObservationSQL, values...)
	if err != nil {
		return false, fmt.Errorf("store observation: %w", err)
	}
	return n == 1, nil
}

// findDuplicate returns the outcome of a reading with an existing key: the same reading again, or other values under the gateway's key
// (a conflict, even if the values equal those of a reading from another source). A gateway reading without this key was stored separately
// by a person, and is a duplicate. keyless reports that the stored reading is to take the gateway's unused key.
func findDuplicate(app core.App, o Observation) (outcome Outcome, keyless bool, err error) {
	same, err := o.findStored(app)
	if err != nil && !collections.IsNotFound(err) {
		return Outcome{}, false, err
	}
	stored := err == nil
	if stored && (o.gatewayKey == "" || same.GetString(collections.ObservationSource) == string(vitals.SourceGateway)) {
		return Outcome{Observation: ObservationFromRecord(same), Duplicate: true}, false, nil
	}
	first, err := collections.FindObservationByGatewayKey(app, o.gatewayKey)
	switch {
	case err == nil && o.awaitsParts && readingKey(collections.PatientOf(first), readingFromRow(first).WithoutOptional(o.Reading)) == o.readingKey:
		return Outcome{Observation: ObservationFromRecord(first), Duplicate: true}, false, nil
	case err == nil && o.readingKey != "" && first.GetString(collections.ObservationReadingKey) == o.readingKey: // a person corrected its time
		return Outcome{Observation: ObservationFromRecord(first), Duplicate: true}, false, nil
	case err == nil && (!stored || first.Id != same.Id):
		return Outcome{Observation: ObservationFromRecord(first), Conflict: true}, false, nil
	case stored && (err == nil || collections.IsNotFound(err)):
		return Outcome{Observation: ObservationFromRecord(same), Duplicate: true}, same.GetString(collections.ObservationGatewayKey) == "", nil
	}
	return Outcome{}, false, err
}
