package collections

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Columns of a patient's thresholds that are used when a record is saved.
const (
	ThresholdsBounds    = "bounds" // JSON
	ThresholdsUpdatedAt = ColumnUpdatedAt
	ThresholdsUpdatedBy = "updated_by"
)

// ThresholdsRow is the stored bounds of one patient, or of the practice if Patient is empty.
type ThresholdsRow struct {
	ID        string `db:"id"`
	Patient   string `db:"patient"`
	Bounds    string `db:"bounds"` // JSON
	UpdatedAt string `db:"updated_at"`
	UpdatedBy string `db:"updated_by"`
	Templates string `db:"templates"` // JSON: which templates were applied
	// AgeGroup decides whether the practice's bounds, which are for adults, apply to the patient. It is also set without stored bounds.
	AgeGroup string `db:"-"`
	// Proposed are the undecided templates (JSON), see [proposedTemplates]. They are also set without stored bounds.
	Proposed string `db:"-"`
}

// Changed returns when the bounds were last changed; zero for the initial values.
func (r ThresholdsRow) Changed() time.Time { return ParseInstant(r.UpdatedAt) }

// FindThresholds returns the stored bounds of the practice and of a patient; a row without an id means none.
func FindThresholds(app core.App, patientID string) (practice, own ThresholdsRow, err error) {
	var rows []ThresholdsRow
	err = app.DB().Select("id", "patient", "COALESCE(bounds, '') AS bounds", "updated_at", "updated_by", "COALESCE(templates, '') AS templates").From(Thresholds).
		Where(dbx.In("patient", "", patientID)).All(&rows)
	if err != nil {
		return practice, own, fmt.Errorf("find thresholds: %w", err)
	}
	for _, row := range rows {
		if row.Patient == "" {
			practice = row
		}
		if row.Patient == patientID {
			own = row
		}
	}
	if patientID == "" {
		return practice, own, nil
	}
	own.AgeGroup, own.Proposed, err = thresholdFacts(app, patientID)
	return practice, own, err
}

// ScoringFacts returns a patient's diagnoses and own bounds with the templates applied; a row without an id means none.
func ScoringFacts(app core.App, patientID string) (codes []string, own ThresholdsRow, err error) {
	stored, err := queryValue[string](app, "read diagnoses", "SELECT COALESCE(icd10_codes, '') FROM patients WHERE id = {:id}", dbx.Params{"id": patientID})
	if err != nil {
		return nil, own, err
	}
	if stored != "" {
		if err := json.Unmarshal([]byte(stored), &codes); err != nil {
			return nil, own, wrap(err, "read diagnoses")
		}
	}
	_, own, err = FindThresholds(app, patientID)
	return codes, own, err
}

// StoreThresholds writes the bounds of a patient or of the practice.
func StoreThresholds(tx core.App, row ThresholdsRow) error {
	return exec(tx, "store thresholds", `INSERT INTO thresholds (id, patient, bounds, updated_at, updated_by)
			VALUES ({:id}, {:patient}, {:bounds}, {:at}, {:by})
		ON CONFLICT (patient) DO UPDATE SET bounds = {:bounds}, updated_at = {:at}, updated_by = {:by}`, dbx.Params{"id": row.ID, "patient": row.Patient, "bounds": row.Bounds, "at": row.UpdatedAt, "by": row.UpdatedBy})
}

// PatientBounds is a patient's own bounds, or "", and the patient's time zone; "" is the practice's.
type PatientBounds struct {
	PatientID string `db:"id"`
	Bounds    string `db:"bounds"` // JSON
	TimeZone  string `db:"time_zone"`
	AgeGroup  string `db:"age_group"`
	Proposed  string `db:"proposed"` // JSON, see [proposedTemplates]
}

// BoundedPatients selects the active patients, of a user's care teams unless "", or one patient in any state.
type BoundedPatients struct{ PatientID, CareTeamOf string }

func (b BoundedPatients) where() Conditions {
	active := activePatients("p.id", b.CareTeamOf)
	if b.PatientID != "" {
		active[0] = dbx.HashExp{"p.id": b.PatientID}
	}
	return active
}

// Count counts the patients.
func (b BoundedPatients) Count(ctx context.Context, app core.App) (n int, err error) {
	err = app.DB().Select("COUNT(*)").From("patients p").Where(AllOf(b.where())).WithContext(ctx).Row(&n)
	return n, wrap(err, "count patients with their bounds")
}

// Page returns the next patients, in order.
func (b BoundedPatients) Page(ctx context.Context, app core.App, after string, limit int) (page []PatientBounds, err error) {
	err = app.DB().Select("p.id", "COALESCE(t.bounds, '') AS bounds", "COALESCE(s.age_group, '') AS age_group", "p.time_zone",
		"COALESCE("+ProposedTemplates("s")+", '') AS proposed").From("patients p").
		LeftJoin("thresholds t", dbx.NewExp("t.patient = p.id")).LeftJoin("triage_scores s", dbx.NewExp("s.patient = p.id")).
		Where(AllOf(append(b.where(), dbx.NewExp("p.id > {:after}", dbx.Params{"after": after})))).
		OrderBy("p.id").Limit(int64(limit)).WithContext(ctx).All(&page)
	return page, wrap(err, "list patients with their bounds")
}

// ThresholdChange is one changed bound in the change log.
type ThresholdChange struct{ core.BaseRecordProxy }

// StoreThresholdChange adds a changed bound to the log.
func StoreThresholdChange(tx core.App, patientID, field string, before, after *float64, reason phi.Text, by string, now time.Time) error {
	_, err := store(tx, "log threshold change", ThresholdChanges, map[string]any{
		"patient": patientID, "changed_by": by, "changed_at": FormatInstant(now),
		"field": field, "old_value": before, "new_value": after, "reason": reason.Reveal(),
	})
	return err
}

// ThresholdChangeFilter narrows the change log; zero values do not narrow.
type ThresholdChangeFilter struct {
	PatientID, Field, ChangedBy string
	// From and To bound the time of the change, both inclusive.
	From, To time.Time
	// CareTeamOf selects the patients of a user's care teams (record id).
	CareTeamOf string
}

// PageOfThresholdChanges returns a page of the log, newest first, and the total. Source: docs/decisions/alerts.md, "Threshold-change filters".
func PageOfThresholdChanges(app core.App, f ThresholdChangeFilter, offset, limit int) (page []*ThresholdChange, total int, err error) {
	records, total, err := Conditions{}.Equal("patient", f.PatientID).Equal("field", f.Field).Equal("changed_by", f.ChangedBy).
		Between("changed_at", f.From, f.To).OnCareTeamOf(f.CareTeamOf).
		PageOfUndeleted(app, ThresholdChanges, "changed_at DESC, id DESC", offset, limit)
	return allAs[ThresholdChange](records), total, err
}

func (c *ThresholdChange) Number() int64        { return Number(c.Id) }
func (c *ThresholdChange) PatientID() string    { return c.GetString("patient") } // "" for the practice's defaults
func (c *ThresholdChange) ChangedBy() string    { return c.GetString("changed_by") }
func (c *ThresholdChange) ChangedAt() time.Time { return instantOf(c, "changed_at") }
func (c *ThresholdChange) Field() string        { return c.GetString("field") }
func (c *ThresholdChange) Reason() phi.Text     { return phi.Text(c.GetString("reason")) }

// OldValue was in force before, or nil.
func (c *ThresholdChange) OldValue() *float64 { return Optional(c.ProxyRecord(), "old_value") }

// NewValue is in force since, or nil.
func (c *ThresholdChange) NewValue() *float64 { return Optional(c.ProxyRecord(), "new_value") }
