package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/object"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// observationView is an observation as the contract shows it: the fields of other kinds are left out.
// Source: docs/decisions/observations.md, "Observation response shape".
type observationView = object.Shown

type alertDetails struct {
	Level   string `json:"level"`
	Message string `json:"message"`
}

// raised is an alert of an observation, as far as its view shows it.
type raised struct {
	ID             int64
	Level, Message string
}

func viewObservation(o observations.Observation, raisedAlerts []raised, reader access.Role) observationView {
	r, status := o.Reading, collections.StatusFinal
	if o.EnteredInError {
		status = collections.StatusEnteredInError
	}
	var v observationView
	v.Add("id", o.ID)
	v.Add("patient_id", o.PatientID)
	v.Add("observation_type", r.Kind)
	showValues(&v, r)
	v.Add("device_id", orNull(r.DeviceID))
	v.Add("measured_at", input.FormatInstant(r.MeasuredAt))
	v.Add("source", o.Source)
	v.Add("status", status)
	v.Add("fhir_status", orNull(o.FHIRStatus))
	showAlerts(&v, raisedAlerts, reader)
	v.Add("transmitted_resource_id", orNull(o.EMRResourceID))
	v.Add("created_at", input.FormatInstant(o.CreatedAt))
	return v
}

// showValues shows what was measured, and in other units what is shown in them.
func showValues(v *observationView, r vitals.Reading) {
	kind := r.Kind.Definition()
	for _, p := range kind.All {
		value := r.Value(p)
		v.Add(p.Column, value)
		for _, unit := range p.Units {
			if unit.Back != nil && value != nil {
				v.Add(unit.Field, unit.Back(*value))
			}
		}
	}
	for _, m := range kind.Marks {
		if m.Flag() && r.Says(m) != "" {
			v.Add(m.Name, r.Says(m) == vitals.Yes)
			continue
		}
		v.Add(m.Name, orNull(r.Says(m)))
	}
}

// showAlerts shows the most severe alert. Alerts are a clinical work list: the portal does not see them, billing sees that there are some.
func showAlerts(v *observationView, raisedAlerts []raised, reader access.Role) {
	if reader == access.Patient {
		return
	}
	var details *alertDetails
	ids := []int64{}
	for _, alert := range raisedAlerts {
		ids = append(ids, alert.ID)
		worse := details == nil || (alert.Level == string(alerts.Critical) && details.Level != alert.Level)
		if worse && reader != access.DataMonitor {
			details = &alertDetails{Level: alert.Level, Message: alert.Message}
		}
	}
	v.Add("alert_triggered", len(ids) > 0)
	if details != nil {
		v.Add("alert_details", details)
	}
	v.Add("alert_ids", ids)
}

func raisedBy(outcome observations.Outcome) (list []raised) {
	for _, alert := range outcome.Alerts {
		if alert.Level != string(alerts.Normal) {
			list = append(list, raised{ID: collections.Number(alert.ID), Level: alert.Level, Message: alert.Message})
		}
	}
	return list
}

func raisedFrom(known []*collections.Alert) (list []raised) {
	for _, alert := range known {
		list = append(list, raised{ID: alert.Number(), Level: alert.Level(), Message: alert.MessageShown()})
	}
	return list
}

// orNull is null for the empty text.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
