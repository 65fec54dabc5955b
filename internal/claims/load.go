package claims

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/icd10"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Loader loads the claims of one practice.
type Loader struct {
	Zone      *time.Location // of the practice; nil for UTC
	Practice  Practice
	Submitter Submitter
}

// references are the records that entries refer to, each read once.
type references struct {
	patients    map[string]*collections.Patient
	payers      map[string]collections.Payer
	users       map[string]*collections.User
	codes       *icd10.Lists
	firstOrders map[string]string // first day on which a patient's monitoring was ordered
	firstTimes  map[string]string // when the first time began that an entry bills
	patientPaid map[string]int64  // in cents, by entry
}

// Load loads the claims of entries, in their order.
func (d Loader) Load(app core.App, entries []*collections.BillingEntry) ([]Claim, error) {
	g, err := loadReferences(app, entries)
	if err != nil {
		return nil, err
	}
	list := make([]Claim, len(entries))
	for i, entry := range entries {
		if list[i], err = d.newClaim(app, g, entry); err != nil {
			return nil, err
		}
		if list[i].Payer.SendOrderingProvider {
			if list[i].Ordering, err = orderingProvider(app, list[i]); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

func loadReferences(app core.App, entries []*collections.BillingEntry) (*references, error) {
	var entryIDs, patientIDs, userIDs, codes []string
	for _, entry := range entries {
		entryIDs, patientIDs, userIDs = append(entryIDs, entry.Id), append(patientIDs, entry.PatientID()), append(userIDs, entry.ProviderID())
		codes = append(codes, entry.ICD10Codes()...)
	}
	g := &references{map[string]*collections.Patient{}, map[string]collections.Payer{}, map[string]*collections.User{}, nil, map[string]string{}, nil, nil}
	people, err := collections.PatientsByID(app, distinct(patientIDs))
	if err != nil {
		return nil, err
	}
	for _, p := range people {
		g.patients[p.Id] = p
	}
	payers, err := collections.ListPayers(app)
	if err != nil {
		return nil, err
	}
	for _, p := range payers {
		g.payers[p.ID] = p
	}
	users, err := collections.UsersByID(app, distinct(userIDs))
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		g.users[u.Id] = u
	}
	if g.codes, err = icd10.LoadLists(app, distinct(codes)); err != nil {
		return nil, err
	}
	if g.patientPaid, err = collections.PatientPaid(app, entryIDs); err != nil {
		return nil, err
	}
	first, err := collections.FirstOrders(app, distinct(patientIDs))
	for _, o := range first {
		if o.Kind == collections.OrderOfMonitoring {
			g.firstOrders[o.Patient] = o.Dated
		}
	}
	if err == nil {
		g.firstTimes, err = collections.FirstBilledTimes(app, entryIDs)
	}
	return g, err
}

// orderingProvider returns who ordered the monitoring that was in force on the date of service: the provider in the latest order, else its author; nil
// without an order.
func orderingProvider(app core.App, c Claim) (*phi.Practitioner, error) {
	orders, err := collections.OrdersOf(app, c.PatientID, c.From)
	if err != nil {
		return nil, err
	}
	for _, o := range slices.Backward(orders) {
		if o.Kind() != collections.OrderOfMonitoring {
			continue
		}
		if named, err := o.OrderingProvider(); named != nil || err != nil {
			return named, err
		}
		author, err := collections.FindUser(app, o.AuthorID())
		if err != nil {
			return nil, err
		}
		return &phi.Practitioner{NPI: author.NPI(), FirstName: author.FirstName(), LastName: author.LastName()}, nil
	}
	return nil, nil
}

func distinct(list []string) []string {
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool { return s == "" })
}

func (d Loader) newClaim(app core.App, g *references, entry *collections.BillingEntry) (Claim, error) {
	c := Claim{
		EntryID: entry.Id, ClaimID: entry.ClaimID(), PatientID: entry.PatientID(), Status: entry.Status(), Practice: d.Practice, Submitter: d.Submitter,
		Payer: g.payers[entry.PayerID()], Diagnoses: entry.ICD10Codes(), CPTCode: entry.CPTCode(), Units: entry.Units(), ChargeCents: entry.ChargeCents(),
		From: entry.ServiceDate(), Through: entry.ServiceDate(), Frequency: cmp.Or(entry.ClaimFrequencyCode(), Original),
		PayerControl: entry.PayerControlNumber(), PatientPaidCents: g.patientPaid[entry.Id],
	}
	if entry.Status() == voidRequested {
		c.Frequency = VoidOfClaim
	}
	if c.Frequency == Replacement && !c.Payer.TakesReplacements() {
		if c.Frequency = Original; entry.PaidTotalCents() > 0 {
			c.NeedsReopening = true // the payer's setting changed since the correction: as an original it would be billed twice
		}
	}
	c.Modifiers = c.Payer.ModifiersOf(c.CPTCode)
	for _, code := range c.Diagnoses {
		switch g.codes.StandingOf(code, c.From) {
		case icd10.Heading:
			c.Headings = append(c.Headings, code)
		case icd10.Unknown:
			c.UnknownDiagnoses = append(c.UnknownDiagnoses, code)
		case icd10.NotCovered:
			c.UncoveredDiagnoses = append(c.UncoveredDiagnoses, code)
		}
	}
	first, err := d.firstBilledDay(app, g, entry)
	if err != nil {
		return c, err
	}
	ordered, was := g.firstOrders[c.PatientID]
	c.Ordered = was && ordered <= first
	if u := g.users[entry.ProviderID()]; u != nil {
		c.Provider = Provider{u.Id, phi.Text(u.FirstName()), phi.Text(u.LastName()), u.NPI(), u.Taxonomy(), u.Role()}
	}
	p := g.patients[entry.PatientID()]
	if c.Unreadable = p == nil || collections.Readable(p.ProxyRecord()) != nil; c.Unreadable {
		return c, nil
	}
	if c.Coverage, err = entry.CoverageOf(p); err != nil {
		return c, err
	}
	if second := c.Coverage.Secondary; second != nil && second.Payer != 0 {
		c.SecondaryPayer = g.payers[collections.NumberID(second.Payer)]
	}
	c.Patient, c.Gender = p.Demographics(), p.Gender()
	c.Referring, err = p.ReferringProvider()
	return c, err
}

// firstBilledDay returns the first day with data of a device entry, or the day of the first minutes
// of a time entry; else, as for 99453, the date of service. A manual entry has no evidence before
// its review, so the facts of its period count. Source: docs/decisions/billing.md, "Orders, plans
// and visits".
func (d Loader) firstBilledDay(app core.App, g *references, entry *collections.BillingEntry) (string, error) {
	var evidence struct {
		Days []string `json:"days"`
	}
	if json.Unmarshal([]byte(entry.Evidence()), &evidence) == nil && len(evidence.Days) > 0 {
		return evidence.Days[0], nil
	}
	zone, started := cmp.Or(d.Zone, time.UTC), g.firstTimes[entry.Id]
	switch category := categoryOf[entry.CPTCode()]; {
	case started != "":
	case slices.Contains(supplyCodes, entry.CPTCode()):
		day, err := collections.FirstDataDay(app, entry.PatientID(), entry.PeriodStart(), entry.PeriodEnd())
		return cmp.Or(day, entry.ServiceDate()), err
	case category != "":
		from, until := collections.ParseDay(entry.PeriodStart(), zone), collections.ParseDay(entry.PeriodEnd(), zone).AddDate(0, 0, 1)
		var err error
		if started, err = collections.FirstTime(app, entry.PatientID(), category, collections.FormatInstant(from), collections.FormatInstant(until)); err != nil {
			return "", err
		}
	}
	if started == "" {
		return entry.ServiceDate(), nil
	}
	return collections.ParseInstant(started).In(zone).Format(time.DateOnly), nil
}

// The codes of device supplies, and the categories of the time of other codes; package billing has their rules.
var (
	supplyCodes = []string{"99454", "99445"}
	categoryOf  = map[string]string{"99457": collections.Interactive, "99458": collections.Interactive, "99470": collections.Interactive, "99091": "interpretation"}
)

// voidRequested is the state of entries with a requested void; package billing defines it.
const voidRequested = "void_requested"
