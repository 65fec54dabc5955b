package billing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/internal/x12"
)

// Evidence is everything that supports an entry: what an auditor requests.
type Evidence struct {
	Days        []EvidenceDay
	Time        []collections.EvidenceTime
	Consents    []collections.EvidenceConsent
	Assignments []collections.EvidenceAssignment
	Alerts      []collections.EvidenceAlert
	Trail       []audit.StoredEntry // of the entry, oldest first
	EvidencePacket
	// HeadID and HeadHash are the end of the audit chain, which seals the trail.
	HeadID   int64
	HeadHash string
}

// EvidenceDay is a day that counted, with its readings.
type EvidenceDay struct {
	Day      string
	Readings []collections.EvidenceReading
}

// GatherEvidence loads the evidence of an entry: the days are those that were billed, the readings of each day those stored now.
func (e *Engine) GatherEvidence(app core.App, entry *collections.BillingEntry) (v Evidence, err error) {
	g := evidenceGatherer{Engine: e, app: app, entry: entry, evidence: &v}
	g.from, g.to = e.instants(Span{entry.PeriodStart(), entry.PeriodEnd()})
	if v.Patient, err = collections.FindPatientAnyState(app, entry.PatientID()); err != nil {
		return v, err
	}
	for _, step := range []func() error{g.loadDays, g.loadTime, g.loadDocuments, g.loadTrail, g.loadOrders, g.loadNames, g.loadMeasurements, g.loadMember} {
		if err := step(); err != nil {
			return v, err
		}
	}
	return v, nil
}

type evidenceGatherer struct {
	*Engine
	app      core.App
	entry    *collections.BillingEntry
	evidence *Evidence
	from, to string // instants of the period
}

// loadMember loads the member id of the claim as it was sent; before that, the patient's at the payer of the entry.
func (g *evidenceGatherer) loadMember() error {
	v, entry := g.evidence, g.entry
	if entry.BatchID() != "" {
		file, err := collections.BatchFile(g.app, entry.BatchID())
		if err != nil && !collections.IsNotFound(err) {
			return err
		}
		if sent, err := x12.Read([]byte(file.Reveal())); err == nil { // a damaged file does not hide the rest of the evidence
			v.MemberID = phi.Text(x12.FindMemberID(sent, entry.ClaimControlNumber()))
		}
		return nil
	}
	covered, err := entry.CoverageOf(v.Patient)
	if v.MemberID = phi.Text(covered.MemberID); collections.Readable(v.Patient.ProxyRecord()) != nil {
		v.MemberID, err = collections.UnreadableText, nil
	}
	return err
}

func (g *evidenceGatherer) loadDays() error {
	var stored DeviceEvidence
	if text := g.entry.Evidence(); text != "" && text != "null" {
		if err := json.Unmarshal([]byte(text), &stored); err != nil {
			return fmt.Errorf("read the stored evidence: %w", err)
		}
	}
	if len(stored.Days) == 0 {
		return nil // an entry without days, or a manual one
	}
	zones := g.evidence.Patient.Zones(g.Zone)
	from, to := zones.Bounds(stored.Days[0], stored.Days[len(stored.Days)-1])
	rows, err := collections.EvidenceReadings(g.app, g.entry.PatientID(), from, to)
	if err != nil {
		return err
	}
	byDay := map[string][]collections.EvidenceReading{}
	for _, row := range rows {
		day := zones.Day(collections.ParseInstant(row.MeasuredAt))
		byDay[day] = append(byDay[day], row)
	}
	for _, day := range stored.Days {
		g.evidence.Days = append(g.evidence.Days, EvidenceDay{day, byDay[day]})
	}
	return nil
}

// loadTime loads the time entries that the entry billed; for a manual entry, the period's time of the code's category.
func (g *evidenceGatherer) loadTime() (err error) {
	rule, _ := g.Rule(g.entry.CPTCode(), g.entry.ServiceDate())
	category := ""
	if g.entry.Source() == SourceManual {
		category = rule.Category
	}
	g.evidence.Time, err = collections.EvidenceTimes(g.app, g.entry.PatientID(), g.entry.Id, evidenceTimeIDs(g.entry), category, g.from, g.to)
	return err
}

func (g *evidenceGatherer) loadDocuments() (err error) {
	if g.evidence.Consents, err = collections.EvidenceConsents(g.app, g.entry.PatientID()); err != nil {
		return err
	}
	if g.evidence.Assignments, err = collections.EvidenceAssignments(g.app, g.entry.PatientID(), g.from, g.to); err != nil {
		return err
	}
	g.evidence.Alerts, err = collections.EvidenceAlerts(g.app, g.entry.PatientID(), g.from, g.to)
	return err
}

func (g *evidenceGatherer) loadTrail() (err error) {
	if g.evidence.Trail, err = EntryHistory(g.app, g.entry); err != nil {
		return err
	}
	id, hash, err := collections.AuditHead(g.app)
	g.evidence.HeadID, g.evidence.HeadHash = collections.Number(id), hash
	return err
}

// EntryHistory returns the audit entries about an entry, oldest first, without reads and exports.
func EntryHistory(app core.App, entry *collections.BillingEntry) (list []audit.StoredEntry, err error) {
	err = audit.Each(app, audit.Filter{PatientID: entry.PatientID(), ResourceType: audit.ResourceBillingEntry, ResourceID: entry.Id}, func(s audit.StoredEntry) error {
		if !strings.HasSuffix(s.Event, ".read") && !strings.HasSuffix(s.Event, ".export") {
			list = append(list, s)
		}
		return nil
	})
	return list, err
}

// EvidencePacket is what an auditor requests besides the facts behind an entry: why the patient is monitored, who renders the service, and the measured
// values. Source: docs/decisions/claims.md, "Evidence packet".
type EvidencePacket struct {
	Patient      *collections.Patient
	MemberID     phi.Text
	Orders       []*collections.Order   // of all kinds, dated until the end of the period, earliest first
	Provider     *collections.User      // the rendering provider; nil for none
	Names        map[string]string      // "Last, First" of the users named in the evidence, by record id
	Measurements map[string]Measurement // by the id of a reading
}

// PlanOfCare returns the latest plan of care; nil if there is none.
func (p EvidencePacket) PlanOfCare() (plan *collections.Order) {
	for _, order := range p.Orders {
		if order.Kind() == collections.PlanOfCare {
			plan = order
		}
	}
	return plan
}

// Measurement is the values of a reading and its origin.
type Measurement struct {
	Origin string
	Values Values
}

// Values are the values of a reading, in the order of its kind.
type Values []Value

// Value is one value; its name is that of the API, with the unit.
type Value struct {
	Name  string
	Value float64
}

// MarshalJSON encodes the values as one object.
func (v Values) MarshalJSON() ([]byte, error) {
	object := make(map[string]float64, len(v))
	for _, value := range v {
		object[value.Name] = value.Value
	}
	return json.Marshal(object)
}

// Text formats the values for a PDF.
func (v Values) Text() string {
	texts := make([]string, len(v))
	for i, value := range v {
		texts[i] = strings.ReplaceAll(value.Name, "_", " ") + " " + vitals.FormatNumber(value.Value)
	}
	return strings.Join(texts, ", ")
}

func (g *evidenceGatherer) loadOrders() (err error) {
	g.evidence.Orders, err = collections.OrdersOf(g.app, g.entry.PatientID(), max(g.entry.PeriodEnd(), g.entry.ServiceDate()))
	return err
}

// loadNames loads all names in one query.
func (g *evidenceGatherer) loadNames() (err error) {
	ids := []string{}
	for _, order := range g.evidence.Orders {
		ids = append(ids, order.AuthorID())
	}
	for _, t := range g.evidence.Time {
		ids = append(ids, t.UserID)
	}
	if g.evidence.Names, err = ProviderNames(g.app, ids); err != nil || g.entry.ProviderID() == "" {
		return err
	}
	g.evidence.Provider, err = collections.FindUser(g.app, g.entry.ProviderID())
	if collections.IsNotFound(err) {
		return nil // the account was deleted
	}
	return err
}

// loadMeasurements loads the values of the readings. A reading stored before origins were recorded has the origin of its source.
func (g *evidenceGatherer) loadMeasurements() error {
	ids, kinds := []string{}, map[string]vitals.Kind{}
	for _, day := range g.evidence.Days {
		for _, r := range day.Readings {
			ids = append(ids, r.ID)
			kinds[r.ID] = vitals.Kind(r.Kind)
		}
	}
	g.evidence.Measurements = map[string]Measurement{}
	if len(ids) == 0 {
		return nil
	}
	records, err := collections.ObservationsByID(g.app, ids)
	for _, record := range records {
		m := Measurement{Origin: cmp.Or(record.GetString(collections.ObservationOrigin), string(vitals.Source(record.GetString(collections.ObservationSource)).Origin()))}
		for _, p := range kinds[record.Id].Definition().All {
			if value := collections.Optional(record, p.Column); value != nil {
				m.Values = append(m.Values, Value{p.Column, *value})
			}
		}
		g.evidence.Measurements[record.Id] = m
	}
	return err
}
