package billing

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// patientFacts are the facts about a patient that the rules need.
type patientFacts struct {
	id                 string
	active, deleted    bool
	archived, restored string // practice days; "" for never
	died               string // date of death; "" for none on record
	interruptions      []Span // earlier ones; Start is the last monitored day before, End the first after
	zones              collections.DatedZones
	payer              int64
	deviceDays         map[string]int    // by payer record id: 16 for one that does not take 99445; 0 for the rule of the date
	minutesRules       map[string]string // of the payers that have a rule of their own, by record id
	provider           string
	diagnoses          []string
	consents           []Span                     // practice days in force; End is "" while in force
	entries            map[string][]existingEntry // by code, in order of date
	lastSupply         string                     // first day of the latest supply period billed by the engine
	assignments        []DeviceAssignment
	setups             []setupRecord // in order of time
	setupDay           string        // practice day of the first setup; "" for none
}

// existingEntry is an entry as planning needs it. Voided ones are included: the engine does not create an entry again after a user voided it.
type existingEntry struct {
	ID, Code       string
	Status, Source string
	Start, End     string // of the billing period
	Units          int
	Payer          string // record id; "" for none
}

// entryFor returns the entry of a code that overlaps a period, or of the set-up in the same episode of care; an active one before a voided one; nil
// for none.
func (f *patientFacts) entryFor(code string, period Span) (found *existingEntry) {
	list := f.entries[code]
	for i, x := range list {
		if code == Setup && f.careEpisode(x.Start) != f.careEpisode(period.Start) || code != Setup && !x.overlaps(period) {
			continue
		}
		if found == nil || !found.isActive() {
			found = &list[i]
		}
	}
	return found
}

// activeOn reports whether the patient was enrolled on a day.
func (f *patientFacts) activeOn(day string) bool { return !f.deleted && f.monitoredOn(day) }

// monitoredOn reports whether the patient was monitored on a day: not after death or the end of
// monitoring, and not in an interruption. Only the minutes and readings of such days count.
func (f *patientFacts) monitoredOn(day string) bool {
	switch {
	case slices.ContainsFunc(f.interruptions, func(s Span) bool { return s.Start < day && day < s.End }):
		return false
	case !f.active:
		return f.archived == "" || day <= f.archived
	}
	return f.archived == "" || f.restored == "" || day <= f.archived || day >= f.restored
}

// serviceDayOf returns the date of service of device supply: the last day of the period, or the day of death in it, because no service after a death is
// paid. Source: docs/decisions/billing.md, "30-day period and the 16 days (99454)"; CARC 13.
func (f *patientFacts) serviceDayOf(p Span) string {
	if f.died != "" && p.contains(f.died) {
		return f.died
	}
	return p.End
}

// loadFacts loads the facts of patients, with the entries that have a period ending on since or later; setup entries always.
func (e *Engine) loadFacts(app core.App, ids []string, since string) (map[string]*patientFacts, error) {
	l := &factsLoader{Engine: e, app: app, ids: ids, since: since, facts: make(map[string]*patientFacts, len(ids))}
	for _, step := range []func() error{l.loadPatients, l.loadConsents, l.loadEntries, l.loadAssignments} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return l.facts, nil
}

type factsLoader struct {
	*Engine
	app   core.App
	ids   []string
	since string
	facts map[string]*patientFacts
}

func (l *factsLoader) loadPatients() error {
	rows, err := collections.PatientFactsByID(l.app, l.ids)
	if err != nil {
		return err
	}
	payers, err := collections.ListPayers(l.app)
	if err != nil {
		return err
	}
	minutesRules, deviceDays := map[string]string{}, map[string]int{}
	for _, p := range payers {
		if deviceDays[p.ID] = p.DeviceDays; p.MinutesRule != "" {
			minutesRules[p.ID] = p.MinutesRule
		}
	}
	for _, row := range rows {
		f := &patientFacts{
			id: row.ID, active: row.Active, deleted: row.Deleted != "", payer: row.Payer, deviceDays: deviceDays, provider: row.Provider, lastSupply: row.Supply,
			entries: map[string][]existingEntry{}, minutesRules: minutesRules,
			died: row.Deceased, archived: l.lastDay(row), restored: l.dayOfInstant(row.Restored), zones: collections.ZonesOf(row.Zone, row.EarlierZones, l.Zone),
		}
		for _, pause := range row.Pauses {
			f.interruptions = append(f.interruptions, Span{l.dayOfInstant(pause.From), l.dayOfInstant(pause.Until)})
		}
		_ = json.Unmarshal([]byte(row.Codes), &f.diagnoses) // unreadable codes count as missing
		l.facts[row.ID] = f
	}
	return nil
}

// minutesRule returns the rule of minutes of the patient's payer; "" for the practice's.
func (f *patientFacts) minutesRule() string { return f.minutesRules[f.payerID()] }

// payerID returns the record id of the patient's payer, which a new entry gets; "" for none.
func (f *patientFacts) payerID() string { return collections.NumberID(f.payer) }

// takesShortSupply reports whether a payer takes 99445 on a service date.
func (f *patientFacts) takesShortSupply(payer, serviceDate string) bool {
	return f.deviceDays[payer] < baseRule(DeviceSupply, serviceDate).MinDays
}

// lastDay returns the last practice day before the end of monitoring: of death, of the effective end, or of the archiving; "" for a patient who
// was never archived. Restoring a patient takes the effective end back. Source: docs/decisions/patients.md, "Archiving and death".
func (l *factsLoader) lastDay(row collections.PatientFacts) string {
	last, ended := l.dayOfInstant(row.Archived), l.dayOfInstant(row.Ended)
	if row.Active {
		ended = ""
	}
	for _, day := range []string{ended, row.Deceased} {
		if day != "" && day < last {
			last = day
		}
	}
	return last
}

func (l *factsLoader) loadConsents() error {
	rows, err := collections.MonitoringConsents(l.app, l.ids)
	for _, row := range rows {
		end := l.dayOfInstant(row.Expires)
		if revoked := l.dayOfInstant(row.Revoked); revoked != "" && (end == "" || revoked < end) {
			end = revoked
		}
		if f := l.facts[row.Patient]; f != nil {
			f.consents = append(f.consents, Span{l.dayOfInstant(row.Granted), end})
		}
	}
	return err
}

func (l *factsLoader) loadEntries() error {
	rows, err := collections.EntryLines(l.app, l.ids, l.since)
	for _, row := range rows {
		f := l.facts[row.Patient]
		if f == nil {
			continue
		}
		for entry := range strings.SplitSeq(row.List, ";") {
			x := strings.Split(entry, ",")
			units, _ := strconv.Atoi(x[6]) // written by SQLite as a number
			f.entries[x[1]] = append(f.entries[x[1]], existingEntry{x[0], x[1], x[2], x[3], x[4], x[5], units, x[7]})
		}
	}
	return err
}

// loadAssignments loads devices and their training; the first training of an episode is its set-up.
func (l *factsLoader) loadAssignments() error {
	rows, err := collections.TrainedAssignments(l.app, l.ids)
	for _, row := range rows {
		f := l.facts[row.Patient]
		if f == nil {
			continue
		}
		h := DeviceAssignment{Device: row.Device, From: f.zones.Day(collections.ParseInstant(row.From))}
		if row.Until != "" {
			h.Until = f.zones.Day(collections.ParseInstant(row.Until))
		}
		f.assignments = append(f.assignments, h)
		for _, s := range append(row.Earlier, collections.SetUpRecord{At: row.TrainedAt, By: row.TrainedBy}) {
			if s.At != "" {
				f.setups = append(f.setups, setupRecord{s.At, l.dayOfInstant(s.At), s.By, row.Device})
			}
		}
	}
	for _, f := range l.facts {
		if slices.SortStableFunc(f.setups, func(a, b setupRecord) int { return cmp.Compare(a.at, b.at) }); len(f.setups) > 0 {
			f.setupDay = f.setups[0].day
		}
	}
	return err
}

// hasActiveEntry reports whether an active entry of a code overlaps a period.
func (f *patientFacts) hasActiveEntry(code string, period Span) bool {
	return slices.ContainsFunc(f.entries[code], func(x existingEntry) bool { return x.isActive() && x.overlaps(period) })
}

// hasPrimaryOf reports whether an entry of a primary code to a payer, in one of some states or in any that is active, overlaps the period of an add-on: a payer
// pays an add-on only beside the primary code that it has itself. Source: docs/decisions/billing.md, "99457 and 99458".
func (f *patientFacts) hasPrimaryOf(codes []string, period Span, payer string, states ...string) bool {
	return slices.ContainsFunc(codes, func(code string) bool {
		return slices.ContainsFunc(f.entries[code], func(x existingEntry) bool {
			return x.Payer == payer && x.overlaps(period) && (len(states) == 0 && x.isActive() || slices.Contains(states, x.Status))
		})
	})
}

func (e existingEntry) overlaps(p Span) bool { return e.Start <= p.End && e.End >= p.Start }

// isActive reports whether an entry is billed and not being undone.
func (e existingEntry) isActive() bool {
	return !slices.Contains([]string{Voided, VoidRequested, RefundDue, Refunded}, e.Status)
}

// hasConsentThroughout reports whether a single consent covers a whole period, the usual case.
func (f *patientFacts) hasConsentThroughout(period Span) bool {
	return len(f.consents) == 1 && f.consents[0].Start <= period.Start && f.consents[0].End == ""
}

// hasConsentOn reports whether a consent was in force on a day.
func (f *patientFacts) hasConsentOn(day string) bool {
	return slices.ContainsFunc(f.consents, func(s Span) bool { return s.contains(day) })
}

// hasDevice reports whether a device is assigned now.
func (f *patientFacts) hasDevice() bool {
	return slices.ContainsFunc(f.assignments, func(h DeviceAssignment) bool { return h.Until == "" })
}

// devicesDuring returns the devices that the patient held during a period.
func (f *patientFacts) devicesDuring(p Span) (devices []string) {
	for _, h := range f.assignments {
		if (Span{h.From, h.Until}).OverlapsOpen(p) && !slices.Contains(devices, h.Device) {
			devices = append(devices, h.Device)
		}
	}
	return devices
}
