package billing

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Packet is what an auditor requests besides the facts behind an entry: why the patient is monitored, who renders the service, and the measured
// values. Source: docs/decisions/claims.md, "Evidence packet".
type Packet struct {
	Orders       []*collections.Order   // of all kinds, dated until the end of the period, earliest first
	Provider     *collections.User      // the rendering provider; nil for none
	Names        map[string]string      // "Last, First" of the users named in the evidence, by record id
	Measurements map[string]Measurement // by the id of a reading
}

// PlanOfCare returns the latest plan of care; nil if there is none.
func (p Packet) PlanOfCare() (plan *collections.Order) {
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
