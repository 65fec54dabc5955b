// Package visitreport builds the printed report for an office visit: a summary of a patient's
// readings, the response to critical ones, and what was excluded, readable in black and white. It
// states measurements and makes no diagnosis. Callers decide who may read it. The rules are in
// docs/decisions/observations.md, "Report for a visit".
package visitreport

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/internal/vitalsummary"
)

// Days covered by a report.
const (
	MinDays     = 7
	DefaultDays = 30
	MaxDays     = 90
	// The newest entries considered for the sheet.
	maxCriticals, maxNotes = 50, 500
)

// Practice is the letterhead and time zone of the report.
type Practice struct {
	Name, Letterhead string
	Zone             *time.Location
}

// Request selects the contents of a report.
type Request struct {
	Days int
	// From and To are a period in place of the last days, To exclusive; both zero for none. Its days are in the practice's zone. A report of a
	// period leaves out suspect readings, which may be another person's, and everything before and after it.
	From, To time.Time
	// EscalationID is the escalation that the report is about, with its history; "" for none.
	EscalationID string
	Units        Units
	// MadeBy names the caller. MinutesOf limits the minutes of calls and notes to one user if the role sees no others; "" for all.
	MadeBy    phi.Text
	MinutesOf string
}

// Report is the data of the sheet. It refuses to print.
type Report struct {
	practice Practice
	request  Request
	patient  *collections.Patient
	provider phi.Text
	age      int
	hasAge   bool
	zone     *time.Location
	now      time.Time
	from     time.Time // start of the first day
	end      time.Time // the last moment that is covered

	points           []Point
	summary          vitalsummary.Summary
	bounds           alerts.Thresholds
	excluded         Excluded
	days             int // with counted readings
	typed            int
	criticals        []Critical
	criticalsOmitted int // not listed
	notes            []Note
	escalation       *collections.Escalation
	steps            []Note // the escalation's history
	devices          []*collections.Device
}

// Format reveals nothing.
func (*Report) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[report]") }

// LogValue reveals nothing.
func (*Report) LogValue() slog.Value { return slog.StringValue("[report]") }

// Point is one reading.
type Point struct {
	At      time.Time // in the patient's zone
	Reading vitals.Reading
	Suspect bool // drawn as suspect and excluded from means
}

// Excluded counts the readings that do not count.
type Excluded struct{ Suspect, Retracted, Implausible int }

// Critical is a critical alert and the response to it.
type Critical struct {
	At     time.Time
	Value  string
	Action phi.Text
}

// Note is a note of a time entry.
type Note struct {
	At   time.Time
	By   string
	Text phi.Text
}

// Build reads the data for the report of a patient.
func Build(app core.App, practice Practice, patient *collections.Patient, wish Request, now time.Time) (*Report, error) {
	if err := collections.Readable(patient.ProxyRecord()); err != nil {
		return nil, err
	}
	r := &Report{practice: practice, request: wish, patient: patient, now: now, end: now, zone: collections.Zone(patient.TimeZone(), practice.Zone)}
	if r.isOfPeriod() {
		r.zone, r.from = practice.Zone, wish.From.In(practice.Zone)
		if today := collections.StartOfNextDay(now.In(r.zone)); today.Before(wish.To) {
			r.request.To = today // the last days of what is covered are not in the future
		}
		if last := wish.To.Add(-time.Second); last.Before(now) {
			r.end = last
		}
		r.request.Days = daysBetween(r.from, r.end.In(r.zone)) + 1
	} else {
		year, month, day := now.In(r.zone).Date()
		r.from = collections.ParseDay(time.Date(year, month, day-wish.Days+1, 12, 0, 0, 0, time.UTC).Format(time.DateOnly), r.zone)
	}
	r.age, r.hasAge = patients.Age(patient, now, practice.Zone)
	g := builder{Report: r, app: app, pointByObservation: map[string]Point{}}
	for _, step := range []func() error{g.loadReadings, g.loadThresholds, g.loadSummary, g.loadCriticals, g.loadNotes, g.loadEscalation, g.loadDevicesAndProvider} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Document makes the report of a half-open span for the EMR, about an escalation unless its id is ""; isEmpty: it shows nothing.
func (p Practice) Document(app core.App, patientID, escalationID string, from, to, now time.Time) (out []byte, isEmpty bool, err error) {
	patient, err := collections.FindPatient(app, patientID)
	if err != nil {
		return nil, false, err
	}
	r, err := Build(app, p, patient, Request{From: from, To: to, EscalationID: escalationID, MadeBy: phi.Text(p.Name)}, now)
	if err != nil {
		return nil, false, err
	}
	out, err = r.PDF()
	return out, escalationID == "" && !r.HasReadings(), err
}

func (r *Report) isOfPeriod() bool { return !r.request.From.IsZero() }

// until is the exclusive end of what is covered.
func (r *Report) until() time.Time {
	if r.isOfPeriod() {
		return r.request.To
	}
	return collections.StartOfNextDay(r.now.In(r.zone))
}

// HasReadings reports whether a reading counts.
func (r *Report) HasReadings() bool { return len(r.points) > 0 }

type builder struct {
	*Report
	app                core.App
	pointByObservation map[string]Point // readings by observation
	names              map[string]string
}

func (g *builder) loadReadings() error {
	values := make([]*float64, len(vitals.Parameters))
	dates := map[string]bool{}
	return collections.EachChartReading(g.app, g.patient.Id, g.from, g.until(), "origin, source, "+vitals.MealContext.Name+", "+vitals.Comparator.Name+", "+vitals.Columns(vitals.Parameters), func(rows *dbx.Rows) error {
		var id, kind, at, status, review, origin, source, meal, comparator string
		into := []any{&id, &kind, &at, &status, &review, &origin, &source, &meal, &comparator}
		for i := range values {
			values[i] = nil
			into = append(into, &values[i])
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		p := Point{At: collections.ParseInstant(at).In(g.zone), Reading: vitals.Reading{Kind: vitals.Kind(kind)}, Suspect: review == "suspect"}
		for i, parameter := range vitals.Parameters {
			if values[i] != nil {
				p.Reading = p.Reading.With(parameter, *values[i])
			}
		}
		p.Reading.SetQualifier(vitals.MealContext, meal)
		p.Reading.SetQualifier(vitals.Comparator, comparator)
		switch {
		case status != collections.StatusFinal:
			g.excluded.Retracted++
			return nil
		case p.Suspect && g.isOfPeriod():
			g.excluded.Suspect++
			return nil
		case p.Suspect:
			g.excluded.Suspect++
		default:
			dates[p.At.Format(time.DateOnly)] = true
			g.days = len(dates)
			if vitals.Origin(origin) == vitals.OriginStaff || vitals.Origin(origin) == vitals.OriginPatient || origin == "" && source != "gateway" {
				g.typed++
			}
		}
		g.points, g.pointByObservation[id] = append(g.points, p), p
		return nil
	})
}

func (g *builder) loadThresholds() error {
	configured, err := alerts.Configured(g.app, g.patient.Id)
	g.bounds = configured.InForce
	return err
}

func (g *builder) loadSummary() (err error) {
	if g.isOfPeriod() {
		g.summary, err = vitalsummary.LoadMonth(g.app, g.patient.Id, g.from, g.until())
		return err
	}
	g.summary, err = vitalsummary.NewReader(g.practice.Zone).Load(g.app, g.patient.Id, g.now)
	return err
}

func (g *builder) loadCriticals() error {
	filter := collections.AlertFilter{PatientID: g.patient.Id, Level: string(alerts.Critical), From: g.from}
	if g.isOfPeriod() {
		filter.To = g.end
	}
	page, total, err := collections.PageOfAlerts(g.app, filter, 0, maxCriticals)
	if err != nil {
		return err
	}
	for _, record := range page {
		alert := collections.AsAlert(record)
		if alert.Type() == alerts.TypeImplausibleReading && alert.Outcome() != "confirmed" {
			g.excluded.Implausible++
		}
		_, isShown := g.pointByObservation[alert.ObservationID()]
		if alert.ResolutionReason() == "withdrawn" || g.isOfPeriod() && !isShown && alert.ObservationID() != "" {
			total--
			continue
		}
		c := Critical{At: alert.CreatedAt().In(g.zone), Value: g.valueOf(alert)}
		if p, ok := g.pointByObservation[alert.ObservationID()]; ok {
			c.At = p.At
		}
		if c.Action, err = g.actionText(alert); err != nil {
			return err
		}
		g.criticals = append(g.criticals, c)
	}
	slices.SortStableFunc(g.criticals, func(a, b Critical) int { return b.At.Compare(a.At) })
	g.criticalsOmitted = total - len(g.criticals)
	return nil
}

// valueOf formats the measured value of an alert.
func (g *builder) valueOf(alert *collections.Alert) string {
	point, stored := g.pointByObservation[alert.ObservationID()]
	systolic, diastolic := point.Reading.Value(vitals.Systolic), point.Reading.Value(vitals.Diastolic)
	if alert.Type() == vitals.Systolic.Group && systolic != nil && diastolic != nil {
		return formatWhole(*systolic) + "/" + formatWhole(*diastolic)
	}
	switch alert.Type() {
	case alerts.TypeImplausibleReading:
		return "implausible"
	case alerts.TypeEarlyWarning:
		if value := alert.Value(); value != nil {
			return "early warning score " + vitals.FormatNumber(*value)
		}
		return "early warning score"
	}
	for _, p := range vitals.Parameters {
		if p.Name == alert.Parameter() || p.Group == alert.Type() {
			value := alert.Value()
			switch {
			case value == nil:
				return p.Label
			case p.Change != nil:
				return p.Label + " " + formatSigned(g.request.Units.weightChange(*value)) + " " + g.request.Units.unit(p)
			case stored && point.Reading.Value(p) != nil && *point.Reading.Value(p) == *value:
				return p.Label + " " + g.request.Units.text(p, point.Reading)
			}
			return p.Label + " " + g.request.Units.value(p, *value)
		}
	}
	return alert.Type()
}

func (g *builder) loadDevicesAndProvider() (err error) {
	if g.devices, err = collections.DevicesOfPatient(g.app, g.patient.Id); err != nil {
		return err
	}
	if id := g.patient.PrimaryProviderID(); id != 0 {
		names, err := collections.UserNames(g.app, []string{collections.NumberID(id)})
		if err != nil {
			return err
		}
		for _, name := range names {
			g.provider = phi.Text(name.First.Reveal() + " " + name.Last.Reveal())
		}
	}
	return nil
}
