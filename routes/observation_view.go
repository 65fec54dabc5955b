package routes

import (
	"encoding/json"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// shown is a member that is either left out, or there with a value or null.
type shown[T any] struct {
	there bool
	value *T
}

func show[T any](value *T) shown[T] { return shown[T]{there: true, value: value} }

// IsZero leaves the member out.
func (s shown[T]) IsZero() bool { return !s.there }

// MarshalJSON writes the value, or null.
func (s shown[T]) MarshalJSON() ([]byte, error) { return json.Marshal(s.value) }

// observationView is an observation as the contract shows it: the fields of other kinds are left out.
// Source: docs/decisions/observations.md, "Observation response shape".
type observationView struct {
	ID                 string         `json:"id"`
	PatientID          string         `json:"patient_id"`
	ObservationType    vitals.Kind    `json:"observation_type"`
	Systolic           shown[float64] `json:"systolic,omitzero"`
	Diastolic          shown[float64] `json:"diastolic,omitzero"`
	WeightKg           shown[float64] `json:"weight_kg,omitzero"`
	SpO2               shown[float64] `json:"spo2,omitzero"`
	GlucoseMgDL        shown[float64] `json:"glucose_mg_dl,omitzero"`
	GlucoseMmolL       shown[float64] `json:"glucose_mmol_l,omitzero"`
	Pulse              shown[float64] `json:"pulse,omitzero"`
	PerfusionIndex     shown[float64] `json:"perfusion_index,omitzero"`
	MealContext        shown[string]  `json:"meal_context,omitzero"`
	Comparator         shown[string]  `json:"comparator,omitzero"`
	IrregularHeartbeat shown[bool]    `json:"irregular_heartbeat,omitzero"`
	DeviceID           *string        `json:"device_id"`
	MeasuredAt         string         `json:"measured_at"`
	Source             vitals.Source  `json:"source"`
	Status             string         `json:"status"`
	FHIRStatus         *string        `json:"fhir_status"`
	AlertTriggered     shown[bool]    `json:"alert_triggered,omitzero"`
	AlertDetails       *alertDetails  `json:"alert_details,omitempty"`
	AlertIDs           shown[[]int64] `json:"alert_ids,omitzero"`
	EMRResourceID      *string        `json:"transmitted_resource_id"`
	CreatedAt          string         `json:"created_at"`
	Duplicate          bool           `json:"duplicate,omitempty"`
}

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
	r := o.Reading
	v := observationView{
		ID: o.ID, PatientID: o.PatientID, ObservationType: r.Kind, DeviceID: orNull(r.DeviceID),
		MeasuredAt: input.FormatInstant(r.MeasuredAt), Source: o.Source, Status: collections.StatusFinal,
		FHIRStatus: orNull(o.FHIRStatus), EMRResourceID: orNull(o.EMRResourceID), CreatedAt: input.FormatInstant(o.CreatedAt),
	}
	if o.EnteredInError {
		v.Status = collections.StatusEnteredInError
	}
	switch r.Kind {
	case vitals.BloodPressure:
		v.Systolic, v.Diastolic, v.Pulse, v.IrregularHeartbeat = show(r.Systolic), show(r.Diastolic), show(r.Pulse), show(r.IrregularHeartbeat)
	case vitals.Weight:
		v.WeightKg = show(r.WeightKg)
	case vitals.PulseOximetry:
		v.SpO2, v.Pulse, v.PerfusionIndex = show(r.SpO2), show(r.Pulse), show(r.PerfusionIndex)
	case vitals.BloodGlucose:
		v.GlucoseMgDL, v.MealContext, v.Comparator = show(r.GlucoseMgDL), show(orNull(r.MealContext)), show(orNull(r.Comparator))
		if r.GlucoseMgDL != nil {
			mmol := vitals.MmolLFromMgDL(*r.GlucoseMgDL)
			v.GlucoseMmolL = show(&mmol)
		}
	}
	v.addAlerts(raisedAlerts, reader)
	return v
}

// addAlerts shows the most severe alert. Alerts are a clinical work list: the portal does not see them, billing sees that there are some.
func (v *observationView) addAlerts(raisedAlerts []raised, reader access.Role) {
	if reader == access.Patient {
		return
	}
	triggered, ids := len(raisedAlerts) > 0, []int64{}
	for _, alert := range raisedAlerts {
		ids = append(ids, alert.ID)
		worse := v.AlertDetails == nil || (alert.Level == string(alerts.Critical) && v.AlertDetails.Level != alert.Level)
		if worse && reader != access.DataMonitor {
			v.AlertDetails = &alertDetails{Level: alert.Level, Message: alert.Message}
		}
	}
	v.AlertTriggered, v.AlertIDs = show(&triggered), show(&ids)
}

func raisedBy(outcome observations.Outcome) (list []raised) {
	for _, alert := range outcome.Alerts {
		if alert.Level != string(alerts.Normal) {
			list = append(list, raised{ID: collections.Number(alert.ID), Level: alert.Level, Message: alert.Message})
		}
	}
	return list
}

func raisedFrom(records []*core.Record) (list []raised) {
	for _, record := range records {
		list = append(list, raised{ID: collections.Number(record.Id), Level: record.GetString("level"), Message: collections.TextOf(record, "message")})
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
