package reports

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

// How far around the month lines are loaded: for three supply periods with gaps of the same length, and for a period that begins in the month
// and is billed after it.
const (
	daysBefore = 2*periodsInARow*supplyDays - supplyDays
	daysAround = 2 * supplyDays
)

// GatherAuditFacts loads the facts of a month, each kind for all patients at once.
func GatherAuditFacts(app core.App, zone *time.Location, month billing.Span) (AuditFacts, error) {
	g := factsGatherer{app: app, facts: AuditFacts{Month: month, Zone: zone, Lines: map[string][]AuditedLine{}, FirstBilled: map[string]string{}, FirstFact: map[string]string{}, FirstVisit: map[string]string{}, Days: map[string]DataDayCounts{}, CompetingServices: map[string][]billing.Span{}}}
	g.from, g.to = collections.ParseDay(month.Start, zone), collections.ParseDay(billing.AddDays(month.End, 1), zone)
	for _, step := range []func() error{g.loadLines, g.loadSurrounding, g.loadFirstBilled, g.loadVisits, g.loadCompetingServices, g.loadTime, g.loadDays} {
		if err := step(); err != nil {
			return AuditFacts{}, err
		}
	}
	return g.facts, nil
}

type factsGatherer struct {
	app      core.App
	facts    AuditFacts
	from, to time.Time
}

func (g *factsGatherer) loadLines() error {
	rows, err := collections.AuditedLines(g.app, g.facts.Month.Start, g.facts.Month.End)
	g.add(rows)
	return err
}

func (g *factsGatherer) add(rows []collections.PatientLines) {
	for _, row := range rows {
		for text := range strings.SplitSeq(row.List, ";") {
			if v := strings.Split(text, ","); len(v) == 5 {
				g.facts.Lines[row.Patient] = append(g.facts.Lines[row.Patient], AuditedLine{v[0], row.Patient, v[1], v[2], v[3], v[4]})
			}
		}
	}
}

// loadSurrounding loads the lines before and after the month for patients with supplies in it; for patients with treatment management only the
// supplies, since nothing else is needed.
func (g *factsGatherer) loadSurrounding() error {
	var managed, unmanaged []string
	for patient, lines := range g.facts.Lines {
		supplied, management := withCodes(lines, supplies), withCodes(lines, managements)
		switch {
		case len(supplied) == 0:
		case slices.ContainsFunc(supplied, func(line AuditedLine) bool { return !isManaged(line, management) }):
			unmanaged = append(unmanaged, patient)
		default:
			managed = append(managed, patient)
		}
	}
	month := g.facts.Month
	next := billing.AddDays(month.End, 1)
	for _, part := range []struct {
		ids, codes  []string
		from, until string
	}{
		{unmanaged, slices.Concat(supplies, managements), billing.AddDays(month.Start, -daysBefore), month.Start},
		{unmanaged, slices.Concat(supplies, managements), next, billing.AddDays(next, daysAround)},
		{managed, supplies, billing.AddDays(month.Start, -daysAround), month.Start},
		{managed, supplies, next, billing.AddDays(next, daysAround)},
	} {
		rows, err := collections.AuditedLinesOf(g.app, part.ids, part.codes, part.from, part.until)
		if err != nil {
			return err
		}
		g.add(rows)
	}
	return nil
}

func (g *factsGatherer) loadFirstBilled() error {
	since := billing.ParseDay(g.facts.Month.Start).AddDate(0, -monthsBefore, 0).Format(time.DateOnly)
	rows, err := collections.FirstBilledDays(g.app, since, g.facts.Month.End)
	for _, row := range rows {
		g.facts.FirstBilled[row.Patient], g.facts.FirstFact[row.Patient] = row.Day, row.Day
		days := []string{row.DataDay}
		if row.StartedAt != "" {
			days = append(days, collections.ParseInstant(row.StartedAt).In(g.facts.Zone).Format(time.DateOnly))
		}
		for _, day := range days {
			if day != "" {
				g.facts.FirstFact[row.Patient] = min(g.facts.FirstFact[row.Patient], day)
			}
		}
	}
	return err
}

// billedPatients returns the patients with lines.
func (g *factsGatherer) billedPatients() []string { return slices.Sorted(maps.Keys(g.facts.Lines)) }

func (g *factsGatherer) loadCompetingServices() error {
	rows, err := collections.CompetingServices(g.app, g.billedPatients())
	for _, row := range rows {
		g.facts.CompetingServices[row.Patient] = append(g.facts.CompetingServices[row.Patient], billing.Span{Start: row.From, End: row.Until})
	}
	return err
}

func (g *factsGatherer) loadVisits() error {
	rows, err := collections.FirstOrders(g.app, g.billedPatients())
	for _, row := range rows {
		if row.Kind == collections.EstablishedVisit {
			g.facts.FirstVisit[row.Patient] = row.Dated
		}
	}
	return err
}

func (g *factsGatherer) loadTime() error {
	rows, err := collections.AuditedTimes(g.app, g.from.Add(-longestStretch), g.to)
	for _, row := range rows {
		from := collections.ParseInstant(row.StartedAt)
		g.facts.Time = append(g.facts.Time, LoggedTime{
			ID: collections.Number(row.ID), Person: row.User, Entry: row.Entry, From: from, To: collections.ParseInstant(row.EndedAt),
			Length: time.Duration(row.Seconds) * time.Second, Recorded: collections.ParseInstant(row.RecordedAt), beganThisMonth: !from.Before(g.from),
		})
	}
	return err
}

// loadDays loads the readings of patients with mostly non-device days; days are those of the patient's zone.
func (g *factsGatherer) loadDays() error {
	month := g.facts.Month
	ids, err := collections.PatientsMostlyWithoutDevice(g.app, month.Start, month.End, g.from, g.to)
	if err != nil || len(ids) == 0 {
		return err
	}
	const maxZoneSpread = 26 * time.Hour // between the earliest and the latest time zone
	rows, err := collections.OriginsOfReadings(g.app, ids, g.from.Add(-maxZoneSpread), g.to.Add(maxZoneSpread))
	byDay := map[[2]string]bool{}
	for _, row := range rows {
		day := collections.ZonesOf(row.Zone, row.EarlierZones, g.facts.Zone).Day(collections.ParseInstant(row.MeasuredAt))
		if key := [2]string{row.Patient, day}; contains(month, day) {
			allTyped, seen := byDay[key]
			byDay[key] = row.Typed && (allTyped || !seen)
		}
	}
	for key, all := range byDay {
		days := g.facts.Days[key[0]]
		if days.WithData++; all {
			days.Manual++
		}
		g.facts.Days[key[0]] = days
	}
	return err
}

// AuditedLine is an entry that is not undone. Days are practice days.
type AuditedLine struct{ ID, Patient, Code, Service, Start, End string }

// LoggedTime is a finished time entry.
type LoggedTime struct {
	ID             int64
	Person         string
	Entry          string // the entry that bills it; "" for none yet
	From, To       time.Time
	Length         time.Duration // the part that counts as work
	Recorded       time.Time
	beganThisMonth bool
}

// AuditFacts are the facts of a month in which patterns are searched.
type AuditFacts struct {
	Month       billing.Span
	Zone        *time.Location
	Lines       map[string][]AuditedLine // by patient with a line in the month, with lines before and after it
	FirstBilled map[string]string        // first date of service of each patient billed since three months before
	FirstFact   map[string]string        // first day with data or time that is billed
	FirstVisit  map[string]string        // first visit on record of a patient
	Time        []LoggedTime             // of the month, and time that reaches into its first day
	Days        map[string]DataDayCounts // of patients with readings mostly not from a device
	// CompetingServices are the spans in which another practice bills remote monitoring for a patient; without an end they are open.
	CompetingServices map[string][]billing.Span
}

// DataDayCounts counts a patient's days with data in a month.
type DataDayCounts struct{ WithData, Manual int }
