package routes

import (
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/ranking"
	"github.com/vigilhealth/vigil/routes/web"
)

// thresholdsView is the contract's threshold configuration: the bounds in force. A group that is off is null.
type thresholdsView struct {
	PatientID     *string             `json:"patient_id"`
	BloodPressure *pressureBoundsView `json:"blood_pressure"`
	Pulse         *boundsView         `json:"pulse"`
	PulseOximetry *oximetryBoundsView `json:"pulse_oximetry"`
	BloodGlucose  *boundsView         `json:"blood_glucose"`
	Weight        *weightBoundsView   `json:"weight"`
	UpdatedAt     *string             `json:"updated_at"`
	UpdatedBy     *string             `json:"updated_by"`
	IsDefault     bool                `json:"is_default"`
}

type pressureBoundsView struct {
	SystolicHigh         *float64 `json:"systolic_high"`
	SystolicCritical     *float64 `json:"systolic_critical"`
	SystolicLow          *float64 `json:"systolic_low"`
	SystolicCriticalLow  *float64 `json:"systolic_critical_low"`
	DiastolicHigh        *float64 `json:"diastolic_high"`
	DiastolicCritical    *float64 `json:"diastolic_critical"`
	DiastolicLow         *float64 `json:"diastolic_low"`
	DiastolicCriticalLow *float64 `json:"diastolic_critical_low"`
}

type boundsView struct {
	High        *float64 `json:"high"`
	Critical    *float64 `json:"critical"`
	Low         *float64 `json:"low"`
	CriticalLow *float64 `json:"critical_low"`
}

type oximetryBoundsView struct {
	Low         *float64 `json:"low"`
	CriticalLow *float64 `json:"critical_low"`
}

type weightBoundsView struct {
	ChangeThresholdKg *float64 `json:"change_threshold_kg"`
	ChangeWindowDays  int      `json:"change_window_days"`
	CriticalChangeKg  *float64 `json:"critical_change_kg"`
}

// viewThresholds shows a configuration; a portal user is not told which colleague changed it.
func viewThresholds(c *web.Call, configured alerts.Configuration) thresholdsView {
	t := configured.InForce
	view := thresholdsView{PatientID: orNull(configured.PatientID), UpdatedBy: orNull(configured.UpdatedBy), IsDefault: configured.Default}
	if !configured.UpdatedAt.IsZero() {
		view.UpdatedAt = orNull(input.FormatInstant(configured.UpdatedAt))
	}
	if c.Caller.Role == access.Patient {
		view.UpdatedBy = nil
	}
	for _, group := range alerts.Groups {
		if slices.Contains(configured.Off, group) {
			continue
		}
		switch group {
		case alerts.GroupBloodPressure:
			s, d := t.Systolic, t.Diastolic
			view.BloodPressure = &pressureBoundsView{s.High, s.Critical, s.Low, s.CriticalLow, d.High, d.Critical, d.Low, d.CriticalLow}
		case alerts.GroupPulse:
			view.Pulse = viewBounds(t.Pulse)
		case alerts.GroupPulseOximetry:
			view.PulseOximetry = &oximetryBoundsView{t.SpO2.Low, t.SpO2.CriticalLow}
		case alerts.GroupBloodGlucose:
			view.BloodGlucose = viewBounds(t.Glucose)
		case alerts.GroupWeight:
			view.Weight = &weightBoundsView{t.Weight.Change, t.Weight.WindowDays, t.Weight.CriticalChange}
		}
	}
	return view
}

func viewBounds(l alerts.Limits) *boundsView {
	return &boundsView{l.High, l.Critical, l.Low, l.CriticalLow}
}

func (a *api) readThresholds(c *web.Call) error {
	patient, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	configured, err := alerts.Configured(c.App, patient.Id)
	if err != nil {
		return err
	}
	if err := c.RecordRead(audit.PatientRead, audit.ResourceThresholds, patient.Id, patient.Id); err != nil {
		return err
	}
	return c.OK(viewThresholds(c, configured))
}

func (a *api) updateThresholds(c *web.Call) error {
	patient, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	return a.setThresholds(c, patient.Id)
}

func (a *api) readDefaultThresholds(c *web.Call) error {
	configured, err := alerts.Configured(c.App, "")
	if err != nil {
		return err
	}
	return c.OK(viewThresholds(c, configured))
}

func (a *api) updateDefaultThresholds(c *web.Call) error {
	err := a.setThresholds(c, "")
	if err == nil && a.DefaultsChanged != nil {
		a.DefaultsChanged()
	}
	return err
}

func (a *api) setThresholds(c *web.Call, patientID string) error {
	var body alerts.ChangeBody
	if err := c.Decode(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	change := body.Read(checks)
	if err := checks.Err(); err != nil {
		return err
	}
	configured, err := ranking.SetThresholds(c.App, patientID, change, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	return c.OK(viewThresholds(c, configured))
}

// thresholdChangeView is the contract's threshold change log entry; patient_id is null for the practice's defaults.
type thresholdChangeView struct {
	ID        int64    `json:"id"`
	PatientID *string  `json:"patient_id"`
	ChangedBy string   `json:"changed_by"`
	ChangedAt *string  `json:"changed_at"`
	Field     string   `json:"field"`
	OldValue  *float64 `json:"old_value"`
	NewValue  *float64 `json:"new_value"`
	Reason    *string  `json:"reason"`
}

func (a *api) listThresholdChanges(c *web.Call) error {
	q := c.Query()
	p := q.Paging()
	between := q.Between()
	filter := alerts.ChangeFilter{
		PatientID: q.PatientID(), Field: q.OneOf("field", alerts.ChangeLogFields()...),
		ChangedBy: q.Text("changed_by", 254), From: between.From, To: between.To,
	}
	if err := q.Err(); err != nil {
		return err
	}
	var err error
	if filter.CareTeamOf, err = a.team(c, filter.PatientID); err != nil {
		return err
	}
	page, total, err := alerts.Changes(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	page, unreadable := collections.ReadableOnly(page)
	views, shown := make([]thresholdChangeView, len(page)), map[string]bool{}
	for i, change := range page {
		views[i] = thresholdChangeView{
			ID: change.Number(), PatientID: orNull(change.PatientID()), ChangedBy: change.ChangedBy(),
			ChangedAt: instantOrNull(change.ChangedAt()), Field: change.Field(), OldValue: change.OldValue(),
			NewValue: change.NewValue(), Reason: orNull(change.Reason().Reveal()),
		}
		if change.PatientID() != "" {
			shown[change.PatientID()] = true
		}
	}
	if len(shown) > 0 {
		if err := c.RecordRead(audit.PatientRead, audit.ResourceThresholds, "", sortedKeys(shown)...); err != nil {
			return err
		}
	}
	return web.List(c, p, total, views, unreadable)
}
