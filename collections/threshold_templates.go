package collections

import (
	"encoding/json"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Columns of a threshold template that callers fill, and those that its hook sets.
const (
	TemplateKey         = "key"
	TemplateName        = "name"
	TemplateDiagnoses   = "diagnoses" // JSON
	TemplateMinAge      = "min_age"
	TemplateMaxAge      = "max_age"
	TemplateBounds      = "bounds"  // JSON
	TemplateSources     = "sources" // JSON
	TemplateVersion     = "version"
	TemplateSignedOffBy = "signed_off_by"
	TemplateSignedOffAt = "signed_off_at"
	TemplateUpdatedBy   = "updated_by"
)

// ThresholdTemplate is a set of thresholds for patients with some diagnoses or ages.
type ThresholdTemplate struct{ core.BaseRecordProxy }

// AsThresholdTemplate converts a record of the threshold templates.
func AsThresholdTemplate(record *core.Record) *ThresholdTemplate {
	return as[ThresholdTemplate](record)
}

// NewThresholdTemplate returns an unsaved template with the next number.
func NewThresholdTemplate(app core.App) (*ThresholdTemplate, error) {
	return newRecord[ThresholdTemplate](app, ThresholdTemplates, nil)
}

// ListThresholdTemplates lists all templates in order of creation.
func ListThresholdTemplates(app core.App) ([]*ThresholdTemplate, error) {
	return listOf[ThresholdTemplate](app, ThresholdTemplates, AllOf(nil), "id")
}

// FindThresholdTemplate finds a template by number.
func FindThresholdTemplate(app core.App, number int64) (*ThresholdTemplate, error) {
	return find[ThresholdTemplate](app, ThresholdTemplates, dbx.HashExp{"id": NumberID(number)})
}

// TemplateKeyTaken reports whether another template has the key.
func TemplateKeyTaken(app core.App, key, id string) (bool, error) {
	return queryValue[bool](app, "look for a template's key",
		"SELECT EXISTS (SELECT 1 FROM threshold_templates WHERE key = {:key} COLLATE NOCASE AND id != {:id})", dbx.Params{"key": key, "id": id})
}

func (t *ThresholdTemplate) Number() int64          { return Number(t.Id) }
func (t *ThresholdTemplate) Key() string            { return t.GetString(TemplateKey) }
func (t *ThresholdTemplate) Name() string           { return t.GetString(TemplateName) }
func (t *ThresholdTemplate) Diagnoses() []string    { return t.GetStringSlice(TemplateDiagnoses) }
func (t *ThresholdTemplate) Bounds() string         { return t.GetString(TemplateBounds) }
func (t *ThresholdTemplate) Sources() []string      { return t.GetStringSlice(TemplateSources) }
func (t *ThresholdTemplate) Version() int           { return t.GetInt(TemplateVersion) }
func (t *ThresholdTemplate) SignedOffBy() string    { return t.GetString(TemplateSignedOffBy) }
func (t *ThresholdTemplate) SignedOffAt() time.Time { return instantOf(t, TemplateSignedOffAt) }

// MinAge is in years; nil for none.
func (t *ThresholdTemplate) MinAge() *float64 { return Optional(t.ProxyRecord(), TemplateMinAge) }

// MaxAge is in years; nil for none.
func (t *ThresholdTemplate) MaxAge() *float64 { return Optional(t.ProxyRecord(), TemplateMaxAge) }

// OfferedTemplate is the part of a template that a proposal needs.
type OfferedTemplate struct {
	ID        string   `db:"id"`
	Diagnoses string   `db:"diagnoses"` // JSON
	MinAge    *float64 `db:"min_age"`
	MaxAge    *float64 `db:"max_age"`
}

// OfferedTemplates returns all templates for proposals. Every page of patients needs them, so it reads no full records.
func OfferedTemplates(app core.App) (list []OfferedTemplate, err error) {
	err = app.DB().Select("id", "COALESCE(diagnoses, '') AS diagnoses", "min_age", "max_age").From(ThresholdTemplates).OrderBy("id").All(&list)
	return list, wrap(err, "list offered templates")
}

// AppliedTemplate is a template that was applied to a patient.
type AppliedTemplate struct {
	ID      int64  `json:"id"`
	Key     string `json:"key"`
	Name    string `json:"name"`
	Version int    `json:"version"`
	At      string `json:"at"`
	By      string `json:"by"`
	// Bounds are those it set, by group and field. Callers do not see them; they distinguish a person's later change from the template's value.
	Bounds map[string]map[string]*float64 `json:"bounds,omitempty"`
}

// ParseAppliedTemplates parses the stored list, latest last.
func ParseAppliedTemplates(stored string) (list []AppliedTemplate, err error) {
	if stored == "" || stored == "null" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(stored), &list)
	return list, wrap(err, "read applied templates")
}

// StoreAppliedTemplates stores the templates applied to a patient, who has thresholds of their own.
func StoreAppliedTemplates(tx core.App, patientID string, list []AppliedTemplate) error {
	text, err := json.Marshal(list)
	if err != nil {
		return wrap(err, "encode applied templates")
	}
	return exec(tx, "store applied templates", `UPDATE thresholds SET templates = {:list} WHERE patient = {:patient}`,
		dbx.Params{"list": string(text), "patient": patientID})
}
