package routes

import (
	"encoding/json"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// section is one table of the evidence. A nil cell is null in JSON; widths are the PDF's column
// widths.
type section struct {
	name, title string
	columns     []string
	widths      []float64
	rows        [][]any
}

// moment is a stored instant, or "" for none: null or UTC in JSON, the practice's zone in a PDF.
type moment string

// MarshalJSON implements [json.Marshaler].
func (m moment) MarshalJSON() ([]byte, error) { return json.Marshal(instantOf(string(m))) }

// objects renders the rows as JSON objects.
func (s section) objects() []map[string]any {
	list := make([]map[string]any, len(s.rows))
	for i, row := range s.rows {
		list[i] = map[string]any{}
		for n, column := range s.columns {
			list[i][column] = row[n]
		}
	}
	return list
}

func (a *api) readEvidence(c *web.Call, entry *collections.BillingEntry) error {
	if err := c.RequireScopes(authz.ScopePatientsRead, authz.ScopeObservationsRead, authz.ScopeAlertsRead); err != nil {
		return err // the evidence includes readings, thresholds, orders and consents
	}
	q := c.Query()
	format := q.OneOf("format", "json", "pdf")
	if err := q.Err(); err != nil {
		return err
	}
	evidence, err := a.Billing.GatherEvidence(c.App, entry)
	if err != nil {
		return err
	}
	views, err := viewEntries(c.App, []*collections.BillingEntry{entry})
	if err != nil {
		return err
	}
	if err := c.RecordRead(audit.BillingExport, audit.ResourceBillingEntry, entry.Id, entry.PatientID()); err != nil {
		return err
	}
	sections := sectionsOf(evidence)
	if format == "pdf" {
		return a.evidencePDF(c, views[0], evidence, sections)
	}
	answer := map[string]any{
		"entry": views[0], "generated_at": validate.FormatInstant(c.Now),
		"audit_chain": map[string]any{"head_id": evidence.HeadID, "head_hash": evidence.HeadHash},
	}
	for _, s := range sections {
		answer[s.name] = s.objects()
	}
	rendering := viewRendering(evidence)
	answer["plan_of_care"], answer["rendering_provider"], answer["supervising_practitioner"] = viewPlan(evidence), rendering, rendering
	answer["beneficiary"], answer["practice"] = a.viewBeneficiary(views[0], evidence), a.viewPractice()
	return c.OK(answer)
}

func sectionsOf(e billing.Evidence) []section {
	readings := section{name: "readings", title: "Days with readings", columns: readingColumns, widths: []float64{18, 62, 26, 42, 30, 18, 16, 42}}
	for _, day := range e.Days {
		for _, r := range day.Readings {
			readings.rows = append(readings.rows, []any{day.Day, r.ID, r.Kind, moment(r.MeasuredAt), orNull(r.DeviceID), r.Source, r.Origin, e.Measurements[r.ID].Values})
		}
		if len(day.Readings) == 0 {
			readings.rows = append(readings.rows, []any{day.Day, nil, nil, nil, nil, nil, nil, nil})
		}
	}
	times := section{
		name: "time_entries", title: "Time", widths: []float64{8, 42, 17, 29, 42, 32, 42, 42},
		columns: []string{
			"id", "started_at", "ended_at", "duration_seconds", "category", "activity", "contact_method", "source", "person", "role", "credential", "author", "notes",
			"recorded_at", "attested_by", "attested_at",
		},
	}
	for _, t := range e.Time {
		times.rows = append(times.rows, []any{
			collections.Number(t.ID), moment(t.StartedAt), moment(t.EndedAt), t.Seconds, t.Category, orNull(t.Activity), orNull(t.Contact), t.Source,
			orNull(e.Names[t.UserID]), orNull(t.Role), orNull(t.Credential), t.Author, orNull(t.Notes.Reveal()), moment(t.RecordedAt), orNull(t.AttestedBy),
			moment(t.AttestedAt),
		})
	}
	return append([]section{readings, times, ordersOf(e)}, documentSections(e)...)
}

func documentSections(e billing.Evidence) []section {
	consents := section{
		name: "consents", title: "Consent to monitoring", widths: []float64{8, 18, 36, 36, 36, 36, 36, 40},
		columns: []string{"id", "method", "granted_at", "recorded_at", "expires_at", "revoked_at", "effective_at", "recorded_by"},
	}
	for _, v := range e.Consents {
		consents.rows = append(consents.rows, []any{collections.Number(v.ID), v.Method, moment(v.GrantedAt), moment(v.RecordedAt), moment(v.ExpiresAt), moment(v.RevokedAt), moment(v.EffectiveAt), orNull(v.By)})
	}
	devices := section{
		name: "device_assignments", title: "Devices", widths: []float64{28, 41, 41, 34, 41, 20, 16, 20, 14},
		columns: []string{"device_id", "assigned_at", "unassigned_at", "assigned_by", "setup_completed_at", "setup_completed_by", "manufacturer", "model", "serial_number", "udi"},
	}
	for _, v := range e.Assignments {
		devices.rows = append(devices.rows, []any{
			v.DeviceID, moment(v.AssignedAt), moment(v.UnassignedAt), orNull(v.AssignedBy), moment(v.SetupAt), orNull(v.SetupBy), orNull(v.Manufacturer),
			orNull(v.Model), orNull(v.SerialNumber), orNull(v.UDI),
		})
	}
	alerts := section{
		name: "alerts", title: "Alerts and decisions", widths: []float64{10, 30, 16, 24, 42, 42, 42, 48},
		columns: []string{"id", "type", "level", "status", "created_at", "acknowledged_by", "acknowledged_at", "resolved_by", "resolved_at", "outcome"},
	}
	for _, v := range e.Alerts {
		alerts.rows = append(alerts.rows, []any{
			collections.Number(v.ID), v.Kind, v.Level, v.Status, moment(v.CreatedAt), orNull(v.AcknowledgedBy), moment(v.AcknowledgedAt), orNull(v.ResolvedBy),
			moment(v.ResolvedAt), orNull(v.Outcome),
		})
	}
	trail := section{
		name: "audit_trail", title: "Audit trail of the entry", widths: []float64{10, 42, 32, 42, 64, 64},
		columns: []string{"id", "recorded_at", "event", "actor", "prev_hash", "hash"},
	}
	for _, s := range e.Trail {
		trail.rows = append(trail.rows, []any{s.Number(), moment(s.RecordedAt), s.Event, actorOf(s), s.PrevHash, s.Hash})
	}
	return []section{consents, devices, alerts, trail}
}
