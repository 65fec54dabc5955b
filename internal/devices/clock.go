package devices

import (
	"regexp"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
)

// TimedReading is a reading of a device with what its time is judged by.
type TimedReading struct {
	MeasuredAt time.Time
	// IsLate: it was measured long before it was received. IsDangerous reports whether a value is at or beyond a critical bound.
	IsLate      bool
	IsDangerous func() (bool, error)
	// IsDeferred: a person or a replay stores it later, so other readings of the device may have been stored before it. IsUnnamed: the event
	// names no patient, so it belongs to the holder of the device.
	IsDeferred, IsUnnamed bool
}

// How far a time may lie before the other facts.
const (
	clockSlack       = time.Hour      // of the same device, which a change to or from summer time moves by this much
	factoryZoneSlack = 24 * time.Hour // the time zone of the factory
	longestBacklog   = 1              // year: more than devices store
)

// IsTimeDoubtful reports whether a device's time of a reading cannot be trusted: it is before the device's newest reading, its assignment to
// the patient, the patient's enrollment, or its manufacture. A dangerous value before the enrollment is always doubted; another one may be
// history that a practice loads, for a year, which is more than devices store. It is pure. Source: docs/decisions/devices.md, "Doubtful time".
func IsTimeDoubtful(f collections.ClockFacts, r TimedReading) (bool, error) {
	at := r.MeasuredAt
	switch {
	case r.IsLate && IsTimeImpossible(f, at):
		return true, nil
	case r.IsDeferred:
		return false, nil
	case IsBehind(f, at), (r.IsLate || r.IsUnnamed) && isBefore(at, f.Assigned, f.Assigned):
		return true, nil
	case !r.IsLate:
		return false, nil
	case isBefore(at, f.Enrolled, f.Enrolled):
		return r.IsDangerous()
	}
	return false, nil
}

// ProvesClock reports whether a reading proves its device's clock: it arrived within an hour of its time. Source:
// docs/decisions/devices.md, "Doubtful time".
func ProvesClock(measuredAt, received time.Time) bool { return received.Sub(measuredAt) <= clockSlack }

// DeliveryGap is how long a device is silent between two deliveries: a backlog comes at once.
const DeliveryGap = time.Hour

// ContradictsClock reports whether a late reading shows that its device's clock was set back: the device delivered its last one after the time
// that it gives this one, or delivers each equally late. A backlog is delivered at once, so that its readings are less and less late. It is pure.
// Source: docs/decisions/devices.md, "Doubtful time".
func ContradictsClock(last collections.Arrival, measuredAt, received time.Time) bool {
	if last.ReceivedAt.IsZero() || ProvesClock(measuredAt, received) {
		return false
	}
	if measuredAt.Add(clockSlack).Before(last.ReceivedAt) {
		return true
	}
	difference := received.Sub(measuredAt) - last.ReceivedAt.Sub(last.MeasuredAt)
	return !ProvesClock(last.MeasuredAt, last.ReceivedAt) && difference.Abs() <= clockSlack
}

// IsLateButLive reports whether two late readings of a device arrived as far apart as they were measured: a person measures again, and the clock is
// behind. A backlog arrives faster than it was measured. It is pure. Source: docs/decisions/devices.md, "Doubtful time".
func IsLateButLive(last collections.Arrival, measuredAt, received time.Time) bool {
	if last.ReceivedAt.IsZero() || ProvesClock(measuredAt, received) || ProvesClock(last.MeasuredAt, last.ReceivedAt) {
		return false
	}
	between := received.Sub(last.ReceivedAt)
	return between >= RemeasureGap && (between-measuredAt.Sub(last.MeasuredAt)).Abs() <= RemeasureGap
}

// RemeasureGap is the least time between two readings that a person takes one after the other.
const RemeasureGap = time.Minute

// IsBehind reports whether a device reported a newer time before. A time that was in the future when it was first sent may be sent again.
func IsBehind(f collections.ClockFacts, at time.Time) bool {
	return !f.WasAhead && isBefore(at, f.Newest.Add(-clockSlack), f.Newest)
}

// IsTimeImpossible reports whether a device cannot have measured the patient at a time: it was not made, or the enrollment is further ahead
// than devices store.
func IsTimeImpossible(f collections.ClockFacts, at time.Time) bool {
	return isBefore(at, f.Made.Add(-factoryZoneSlack), f.Made) || isBefore(at, f.Enrolled.AddDate(-longestBacklog, 0, 0), f.Enrolled)
}

// isBefore reports whether a time is before a bound, if its reference is set.
func isBefore(at, bound, reference time.Time) bool { return !reference.IsZero() && at.Before(bound) }

// checkClock resolves the alerts about a device's clock after a plausible time.
func checkClock(tx core.App, device *collections.Device, now time.Time) error {
	wrongAt := device.ClockWrongAt()
	if wrongAt.IsZero() || !device.MeasuredAfter(wrongAt) {
		return nil
	}
	device.ClearClockFault()
	if err := save(tx, device); err != nil {
		return err
	}
	ended, err := collections.ResolveClockAlerts(tx, device.DeviceID(), alerts.TypeDeviceClock, string(alerts.StatusAutoResolved), alerts.System, now)
	if err != nil {
		return err
	}
	return noteResolved(tx, ended, device.DeviceID(), "The clock of device "+device.DeviceID()+" is right again.", now)
}

// manufactureDatePattern matches the date of manufacture in the human-readable form of a unique device identifier. Source: GS1 General
// Specifications, AI (11), YYMMDD; FDA UDI rule, 21 CFR 801.40, 2013.
var manufactureDatePattern = regexp.MustCompile(`\(11\)(\d{2})(\d{2})(\d{2})`)

// ManufactureDate returns the date of manufacture in a unique device identifier; "" for none. Day 00 is the last of the month.
func ManufactureDate(udi string) string {
	found := manufactureDatePattern.FindStringSubmatch(udi)
	if found == nil {
		return ""
	}
	first, err := time.Parse("20060102", "20"+found[1]+found[2]+"01")
	if err != nil {
		return ""
	}
	if found[3] == "00" {
		return first.AddDate(0, 1, -1).Format(time.DateOnly)
	}
	day, err := time.Parse("20060102", "20"+found[1]+found[2]+found[3])
	if err != nil {
		return ""
	}
	return day.Format(time.DateOnly)
}
