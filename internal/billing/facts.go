package billing

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// facts are what the rules ask of one patient.
type facts struct {
	id                  string
	active, deleted     bool
	archived, restored  string // practice days; "" for never
	zone                *time.Location
	payer               int64
	provider            string
	diagnoses           []string
	consents            []Span                // practice days in force; End "" while it is
	entries             map[string][]existing // by code, in the order of their dates
	lastSupply          string                // first day of the latest period that the engine billed for a device
	holdings            []Holding
	educated            string // practice day of the first set-up; "" for none
	educatedBy, trained string // who taught, and with which device
}

// existing is an entry as planning sees it. Voided ones are here too: what a person voided the engine does not make again.
type existing struct {
	ID, Code       string
	Status, Source string
	Start, End     string // of the billing period
	Units          int
}

// entryFor is the entry of a code that overlaps a period: one that counts before one that was voided; nil for none.
func (f *facts) entryFor(code string, period Span) (found *existing) {
	list := f.entries[code]
	for i, x := range list {
		if code != Setup && (x.Start > period.End || x.End < period.Start) {
			continue
		}
		if found == nil || !found.holds() {
			found = &list[i]
		}
	}
	return found
}

// activeOn reports whether the patient was enrolled on a day.
func (f *facts) activeOn(day string) bool {
	switch {
	case f.deleted:
		return false
	case !f.active:
		return f.archived == "" || day <= f.archived
	}
	return f.archived == "" || f.restored == "" || day <= f.archived || day >= f.restored
}

// What may be missing. Source: docs/decisions/billing.md, "Eligibility".
const (
	NotActive        = "not_active"
	MissingConsent   = "missing_consent"
	MissingDiagnosis = "missing_diagnosis"
	MissingSetup     = "missing_setup"
	MissingNote      = "missing_note"
)

// missing are the items that stand against billing a service on a day.
func (e *Engine) missing(f *facts, day string) (items []string) {
	if !f.activeOn(day) {
		items = append(items, NotActive)
	}
	inForce := func(s Span) bool { return s.Start <= day && (s.End == "" || day <= s.End) }
	if e.RequireConsent && !slices.ContainsFunc(f.consents, inForce) {
		items = append(items, MissingConsent)
	}
	if len(f.diagnoses) == 0 {
		items = append(items, MissingDiagnosis)
	}
	return items
}

// load reads the facts of some patients, with the entries whose period ends on a day or later; those of the set-up always.
func (e *Engine) load(app core.App, ids []string, since string) (map[string]*facts, error) {
	l := &loader{Engine: e, app: app, ids: ids, since: since, found: make(map[string]*facts, len(ids))}
	for _, step := range []func() error{l.patients, l.consents, l.entries, l.holdings} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return l.found, nil
}

type loader struct {
	*Engine
	app   core.App
	ids   []string
	since string
	found map[string]*facts
}

func (l *loader) patients() error {
	rows, err := collections.FactsOf(l.app, l.ids)
	for _, row := range rows {
		f := &facts{
			id: row.ID, active: row.Active, deleted: row.Deleted != "", payer: row.Payer, provider: row.Provider, lastSupply: row.Supply,
			entries:  map[string][]existing{},
			archived: l.storedDay(row.Archived), restored: l.storedDay(row.Restored), zone: collections.Zone(row.Zone, l.Zone),
		}
		_ = json.Unmarshal([]byte(row.Codes), &f.diagnoses) // what cannot be read is missing
		l.found[row.ID] = f
	}
	return err
}

// storedDay is the practice day of a stored instant; "" for none.
func (e *Engine) storedDay(instant string) string {
	if at := collections.ParseInstant(instant); !at.IsZero() {
		return e.Day(at)
	}
	return ""
}

func (l *loader) consents() error {
	rows, err := collections.MonitoringConsents(l.app, l.ids)
	for _, row := range rows {
		end := l.storedDay(row.Expires)
		if revoked := l.storedDay(row.Revoked); revoked != "" && (end == "" || revoked < end) {
			end = revoked
		}
		if f := l.found[row.Patient]; f != nil {
			f.consents = append(f.consents, Span{l.storedDay(row.Granted), end})
		}
	}
	return err
}

func (l *loader) entries() error {
	rows, err := collections.EntryLines(l.app, l.ids, l.since)
	for _, row := range rows {
		f := l.found[row.Patient]
		if f == nil {
			continue
		}
		for entry := range strings.SplitSeq(row.List, ";") {
			x := strings.Split(entry, ",")
			units, _ := strconv.Atoi(x[6]) // SQLite made it from a number
			f.entries[x[1]] = append(f.entries[x[1]], existing{x[0], x[1], x[2], x[3], x[4], x[5], units})
		}
	}
	return err
}

// holdings come with what was taught with each device: the first set-up counts.
func (l *loader) holdings() error {
	rows, err := collections.TaughtHoldings(l.app, l.ids)
	first := map[string]string{}
	for _, row := range rows {
		f := l.found[row.Patient]
		if f == nil {
			continue
		}
		h := Holding{Device: row.Device, From: collections.ParseInstant(row.From).In(f.zone).Format(time.DateOnly)}
		if row.Until != "" {
			h.Until = collections.ParseInstant(row.Until).In(f.zone).Format(time.DateOnly)
		}
		f.holdings = append(f.holdings, h)
		if row.Taught != "" && (first[row.Patient] == "" || row.Taught < first[row.Patient]) {
			first[row.Patient] = row.Taught
			f.educated, f.educatedBy, f.trained = l.storedDay(row.Taught), row.By, row.Device
		}
	}
	return err
}
