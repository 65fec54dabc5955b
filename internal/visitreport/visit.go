// Package visit knows the report for a visit: what the readings of some days come to, what was done about the worst of them, and what was left out,
// on one sheet that a printer without colours can print. It says what was found and refuses to know what it means: it is no diagnosis. It decides
// nothing about who may read it.
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

// The days that a report may be about.
const (
	LeastDays = 7
	UsualDays = 30
	MostDays  = 90
	// The newest of what has to find its place on one sheet.
	mostCritical, mostNotes = 50, 500
)

// Practice is in whose name a report is made.
type Practice struct {
	Name, Letterhead string
	Zone             *time.Location
}

// Wish is what is asked for.
type Wish struct {
	Days  int
	Units Units
	// Maker is who asks. NotesOf keeps to the calls and notes of one user, whose role sees no others; "" for all.
	Maker   phi.Text
	NotesOf string
}

// Report is all that the sheet says. It refuses to print.
type Report struct {
	practice Practice
	wish     Wish
	patient  *collections.Patient
	provider phi.Text
	age      int
	aged     bool
	zone     *time.Location
	now      time.Time
	from     time.Time // the first moment

	points    []Point
	summary   vitalsummary.Summary
	bounds    alerts.Thresholds
	left      LeftOut
	days      int // with readings that count
	typed     int
	criticals []Critical
	more      int // critical alerts beyond those listed
	notes     []Note
	devices   []*collections.Device
}

// Format shows nothing of the patient.
func (*Report) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[report]") }

// LogValue shows nothing of the patient.
func (*Report) LogValue() slog.Value { return slog.StringValue("[report]") }

// Point is one reading.
type Point struct {
	At      time.Time // in the patient's zone
	Reading vitals.Reading
	Doubted bool // drawn as such, and in no mean
}

// LeftOut are the readings that count for nothing.
type LeftOut struct{ Suspect, Withdrawn, Implausible int }

// Critical is a critical alert, and what was done about it.
type Critical struct {
	At    time.Time
	Value string
	Done  phi.Text
}

// Note is what somebody wrote down.
type Note struct {
	At   time.Time
	By   string
	Text phi.Text
}

// Gather reads everything for the report of a patient.
func Gather(app core.App, practice Practice, patient *collections.Patient, wish Wish, now time.Time) (*Report, error) {
	if err := collections.Readable(patient.ProxyRecord()); err != nil {
		return nil, err
	}
	r := &Report{practice: practice, wish: wish, patient: patient, now: now, zone: collections.Zone(patient.TimeZone(), practice.Zone)}
	year, month, day := now.In(r.zone).Date()
	r.from = collections.ParseDay(time.Date(year, month, day-wish.Days+1, 12, 0, 0, 0, time.UTC).Format(time.DateOnly), r.zone)
	r.age, r.aged = patients.Age(patient, now, practice.Zone)
	g := gatherer{Report: r, app: app, alertsOf: map[string]Point{}}
	for _, step := range []func() error{g.readings, g.bound, g.summarise, g.alerts, g.written, g.held} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

type gatherer struct {
	*Report
	app      core.App
	alertsOf map[string]Point // readings by observation
	names    map[string]string
}

func (g *gatherer) readings() error {
	values := make([]*float64, len(vitals.Parameters))
	dates := map[string]bool{}
	return collections.EachCharted(g.app, g.patient.Id, g.from, collections.StartOfNextDay(g.now.In(g.zone)), "origin, source, "+vitals.Columns(vitals.Parameters), func(rows *dbx.Rows) error {
		var id, kind, at, status, review, origin, source string
		into := []any{&id, &kind, &at, &status, &review, &origin, &source}
		for i := range values {
			values[i] = nil
			into = append(into, &values[i])
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		p := Point{At: collections.ParseInstant(at).In(g.zone), Reading: vitals.Reading{Kind: vitals.Kind(kind)}, Doubted: review == "suspect"}
		for i, parameter := range vitals.Parameters {
			if values[i] != nil {
				p.Reading = p.Reading.With(parameter, *values[i])
			}
		}
		switch {
		case status != collections.StatusFinal:
			g.left.Withdrawn++
			return nil
		case p.Doubted:
			g.left.Suspect++
		default:
			dates[p.At.Format(time.DateOnly)] = true
			g.days = len(dates)
			if vitals.Origin(origin) == vitals.OriginStaff || vitals.Origin(origin) == vitals.OriginPatient || origin == "" && source != "gateway" {
				g.typed++
			}
		}
		g.points, g.alertsOf[id] = append(g.points, p), p
		return nil
	})
}

func (g *gatherer) bound() error {
	configured, err := alerts.Configured(g.app, g.patient.Id)
	g.bounds = configured.InForce
	return err
}

func (g *gatherer) summarise() (err error) {
	g.summary, err = vitalsummary.NewReader(g.practice.Zone).Of(g.app, g.patient.Id, g.now)
	return err
}

func (g *gatherer) alerts() error {
	filter := collections.AlertFilter{PatientID: g.patient.Id, Level: string(alerts.Critical), From: g.from}
	page, total, err := collections.PageOfAlerts(g.app, filter, 0, mostCritical)
	if err != nil {
		return err
	}
	for _, record := range page {
		alert := collections.AsAlert(record)
		if alert.Type() == alerts.TypeImplausibleReading && alert.Outcome() != "confirmed" {
			g.left.Implausible++
		}
		if alert.ResolutionReason() == "withdrawn" {
			total--
			continue
		}
		c := Critical{At: alert.CreatedAt().In(g.zone), Value: g.valueOf(alert)}
		if p, ok := g.alertsOf[alert.ObservationID()]; ok {
			c.At = p.At
		}
		if c.Done, err = g.doneAbout(alert); err != nil {
			return err
		}
		g.criticals = append(g.criticals, c)
	}
	slices.SortStableFunc(g.criticals, func(a, b Critical) int { return b.At.Compare(a.At) })
	g.more = total - len(g.criticals)
	return nil
}

// valueOf is what was measured, with its unit.
func (g *gatherer) valueOf(alert *collections.Alert) string {
	if p, ok := g.alertsOf[alert.ObservationID()]; ok {
		if systolic, diastolic := p.Reading.Value(vitals.Systolic), p.Reading.Value(vitals.Diastolic); alert.Type() == vitals.Systolic.Group && systolic != nil && diastolic != nil {
			return whole(*systolic) + "/" + whole(*diastolic)
		}
	}
	if alert.Type() == alerts.TypeImplausibleReading {
		return "implausible"
	}
	for _, p := range vitals.Parameters {
		if p.Name == alert.Parameter() || p.Group == alert.Type() {
			if value := alert.Value(); value != nil && p.Change == nil {
				return p.Label + " " + g.wish.Units.value(p, *value)
			}
			return p.Label
		}
	}
	return alert.Type()
}

func (g *gatherer) held() (err error) {
	if g.devices, err = collections.DevicesHeldBy(g.app, g.patient.Id); err != nil {
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
