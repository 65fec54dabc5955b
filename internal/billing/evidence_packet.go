package billing

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Packet is what an auditor asks for besides the facts that an entry was made from: why there is monitoring at all, whose service it was, and
// what the readings said. Source: docs/decisions/claims.md, "Evidence packet".
type Packet struct {
	Orders       []*collections.Order   // of all kinds, dated until the end of the period, the earliest first
	Provider     *collections.User      // who renders; nil for none
	Names        map[string]string      // "Last, First" of the users that the evidence names, by record id
	Measurements map[string]Measurement // by the id of a reading
}

// PlanOfCare is the latest plan of care; nil when there is none.
func (p Packet) PlanOfCare() (plan *collections.Order) {
	for _, order := range p.Orders {
		if order.Kind() == collections.PlanOfCare {
			plan = order
		}
	}
	return plan
}

// Measurement is what a reading said, and who or what brought it.
type Measurement struct {
	Origin string
	Values Values
}

// Values are those of a reading in the order of its kind.
type Values []Value

// Value is one of them; its name is the contract's, with the unit.
type Value struct {
	Name  string
	Value float64
}

// MarshalJSON shows the values as one object.
func (v Values) MarshalJSON() ([]byte, error) {
	object := make(map[string]float64, len(v))
	for _, value := range v {
		object[value.Name] = value.Value
	}
	return json.Marshal(object)
}

// Text is how a paper shows the values.
func (v Values) Text() string {
	texts := make([]string, len(v))
	for i, value := range v {
		texts[i] = strings.ReplaceAll(value.Name, "_", " ") + " " + strconv.FormatFloat(value.Value, 'f', -1, 64)
	}
	return strings.Join(texts, ", ")
}

func (g *evidenceGatherer) loadOrders() (err error) {
	g.evidence.Orders, err = collections.OrdersOf(g.app, g.entry.PatientID(), max(g.entry.PeriodEnd(), g.entry.ServiceDate()))
	return err
}

// loadNames are looked up once, for all who are named.
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
	if collections.Missing(err) {
		return nil // the account is gone; the entry still names who it was
	}
	return err
}

// loadMeasurements reads what the readings said. One that was stored before its origin was noted has the origin of its source.
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
