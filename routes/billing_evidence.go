package routes

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/pdf"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// section is a part of the evidence: column names and rows. A nil cell renders as null.
type section struct {
	name, title string
	columns     []string
	widths      []float64
	rows        [][]any
}

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
		return evidencePDF(c, views[0], evidence, sections)
	}
	answer := map[string]any{
		"entry": views[0], "generated_at": validate.FormatInstant(c.Now),
		"audit_chain": map[string]any{"head_id": evidence.HeadID, "head_hash": evidence.HeadHash},
	}
	for _, s := range sections {
		answer[s.name] = s.objects()
	}
	answer["plan_of_care"], answer["rendering_provider"] = viewPlan(evidence), viewRendering(evidence)
	return c.OK(answer)
}

func sectionsOf(e billing.Evidence) []section {
	readings := section{name: "readings", title: "Days with readings", columns: readingColumns, widths: []float64{2, 5, 3, 3, 3, 2, 2, 4}}
	for _, day := range e.Days {
		for _, r := range day.Readings {
			readings.rows = append(readings.rows, []any{day.Day, r.ID, r.Kind, instantOf(r.MeasuredAt), orNull(r.DeviceID), r.Source, r.Origin, e.Measurements[r.ID].Values})
		}
		if len(day.Readings) == 0 {
			readings.rows = append(readings.rows, []any{day.Day, nil, nil, nil, nil, nil, nil, nil})
		}
	}
	times := section{
		name: "time_entries", title: "Time", widths: []float64{1, 3, 3, 2, 2, 2, 2, 2, 4, 5, 3, 3, 4, 3},
		columns: []string{
			"id", "started_at", "ended_at", "duration_seconds", "category", "activity", "contact_method", "source", "author", "notes", "recorded_at", "person",
			"attested_by", "attested_at",
		},
	}
	for _, t := range e.Time {
		times.rows = append(times.rows, []any{
			collections.Number(t.ID), instantOf(t.StartedAt), instantOf(t.EndedAt), t.Seconds, t.Category, orNull(t.Activity), orNull(t.Contact), t.Source, t.Author,
			orNull(t.Notes.Reveal()), instantOf(t.RecordedAt), orNull(e.Names[t.UserID]), orNull(t.AttestedBy), instantOf(t.AttestedAt),
		})
	}
	return append([]section{readings, times, ordersOf(e)}, documentSections(e)...)
}

func documentSections(e billing.Evidence) []section {
	consents := section{name: "consents", title: "Consent to monitoring", columns: []string{"id", "method", "granted_at", "recorded_at", "expires_at", "revoked_at", "recorded_by"}}
	for _, v := range e.Consents {
		consents.rows = append(consents.rows, []any{collections.Number(v.ID), v.Method, instantOf(v.GrantedAt), instantOf(v.RecordedAt), instantOf(v.ExpiresAt), instantOf(v.RevokedAt), orNull(v.By)})
	}
	devices := section{
		name: "device_assignments", title: "Devices",
		columns: []string{"device_id", "assigned_at", "unassigned_at", "assigned_by", "setup_completed_at", "setup_completed_by", "manufacturer", "model", "serial_number", "udi"},
	}
	for _, v := range e.Assignments {
		devices.rows = append(devices.rows, []any{
			v.DeviceID, instantOf(v.AssignedAt), instantOf(v.UnassignedAt), orNull(v.AssignedBy), instantOf(v.SetupAt), orNull(v.SetupBy), orNull(v.Manufacturer),
			orNull(v.Model), orNull(v.SerialNumber), orNull(v.UDI),
		})
	}
	alerts := section{
		name: "alerts", title: "Alerts and decisions",
		columns: []string{"id", "type", "level", "status", "created_at", "acknowledged_by", "acknowledged_at", "resolved_by", "resolved_at", "outcome"},
	}
	for _, v := range e.Alerts {
		alerts.rows = append(alerts.rows, []any{
			collections.Number(v.ID), v.Kind, v.Level, v.Status, instantOf(v.CreatedAt), orNull(v.AcknowledgedBy), instantOf(v.AcknowledgedAt), orNull(v.ResolvedBy),
			instantOf(v.ResolvedAt), orNull(v.Outcome),
		})
	}
	trail := section{
		name: "audit_trail", title: "Audit trail of the entry", widths: []float64{1, 3, 2, 3, 5, 5},
		columns: []string{"id", "recorded_at", "event", "actor", "prev_hash", "hash"},
	}
	for _, s := range e.Trail {
		trail.rows = append(trail.rows, []any{s.Number(), instantOf(s.RecordedAt), s.Event, actorOf(s), s.PrevHash, s.Hash})
	}
	return []section{consents, devices, alerts, trail}
}

func evidencePDF(c *web.Call, v entryView, e billing.Evidence, sections []section) error {
	d := pdf.New("Evidence for "+v.ClaimID, v.PeriodStart+" to "+v.PeriodEnd, c.Now)
	d.Paragraph(fmt.Sprintf("Patient %s. Code %s, service date %s, %d unit(s), $%s, %s. Status %s.",
		v.PatientName, v.CPTCode, v.ServiceDate, v.Units, v.Amount, v.Payer, strings.ReplaceAll(v.LifecycleStatus, "_", " ")))
	if v.TransmissionDays != nil {
		d.Paragraph(fmt.Sprintf("%d distinct days with data.", *v.TransmissionDays))
	}
	if v.DurationMinutes > 0 {
		d.Paragraph(fmt.Sprintf("%d minutes.", v.DurationMinutes))
	}
	writePacket(d, e)
	for _, s := range sections {
		d.Heading(s.title)
		d.Table(web.Map(s.columns, heading), s.widths, web.Map(s.rows, func(row []any) []string { return web.Map(row, cellText) }))
	}
	d.Heading("Proof")
	d.Paragraph(fmt.Sprintf("Each row of the audit trail holds the hash of the one before. The chain ended at row %d with %s when this was made.", e.HeadID, e.HeadHash))
	return attachPDF(c, d, "evidence-"+v.ClaimID+".pdf")
}

// heading renders a column name for a PDF.
func heading(column string) string { return strings.ReplaceAll(column, "_", " ") }

func attachPDF(c *web.Call, d *pdf.Document, filename string) error {
	out, err := d.Bytes()
	if err != nil {
		return err
	}
	return c.Attach("application/pdf", filename, out)
}

func cellText(cell any) string {
	switch v := cell.(type) {
	case nil:
		return ""
	case *string:
		if v == nil {
			return ""
		}
		return *v
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case billing.Values:
		return v.Text()
	}
	return fmt.Sprint(cell)
}
