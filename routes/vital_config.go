package routes

import (
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/object"
	"github.com/vigilhealth/vigil/internal/ranking"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/routes/web"
)

// thresholdsView is the contract's threshold configuration: the bounds in force. A group that is off is null.
type thresholdsView = object.Shown

// shownSides is the order in which the contract lists bounds.
var shownSides = []vitals.Side{vitals.High, vitals.Critical, vitals.Low, vitals.CriticalLow}

// viewThresholds shows a configuration; a portal user is not told which colleague changed it.
func viewThresholds(c *web.Call, configured alerts.Configuration) thresholdsView {
	var view thresholdsView
	view.Add("patient_id", orNull(configured.PatientID))
	for _, group := range alerts.Groups {
		if slices.Contains(configured.Off, group) {
			view.Add(group, nil)
			continue
		}
		view.Add(group, viewGroup(group, configured.InForce))
	}
	updatedAt, updatedBy := "", configured.UpdatedBy
	if !configured.UpdatedAt.IsZero() {
		updatedAt = input.FormatInstant(configured.UpdatedAt)
	}
	if c.Caller.Role == access.Patient {
		updatedBy = ""
	}
	view.Add("updated_at", orNull(updatedAt))
	view.Add("updated_by", orNull(updatedBy))
	view.Add("is_default", configured.Default)
	return view
}

func viewGroup(group string, t alerts.Thresholds) (view object.Shown) {
	for _, p := range vitals.Watched {
		switch rule := t.Change(p); {
		case p.Group != group:
		case p.Change != nil:
			view.Add(p.Change.Threshold, rule.Change)
			view.Add(p.Change.Window, rule.WindowDays)
			view.Add(p.Change.Critical, rule.CriticalChange)
		default:
			for _, side := range shownSides {
				if slices.Contains(p.Sides, side) {
					view.Add(p.Prefix+string(side), t.Of(p).Of(side))
				}
			}
		}
	}
	return view
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
	filter := collections.ThresholdChangeFilter{
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
	page, total, err := collections.PageOfThresholdChanges(c.App, filter, p.Offset(), p.Size)
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
