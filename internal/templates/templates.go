// Package templates manages threshold templates for groups of patients, which are proposed by diagnosis and age and applied by a clinician,
// and note templates, the texts that a practice reuses. An applied template is a starting point: its bounds become the patient's own, as a
// note's text does. Evaluation of readings is in internal/alerts. The rules are in docs/decisions/alerts.md, "Templates".
package templates

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Limits of a template.
const (
	maxKey     = 50
	maxName    = 100
	maxCodes   = 50
	maxSources = 20
	maxSource  = 500
	maxAge     = 130
)

var (
	keyPattern       = regexp.MustCompile(`^[a-z0-9][a-z0-9_]*$`)
	diagnosisPattern = regexp.MustCompile(`^[A-Z][0-9][0-9A-Z](\.[0-9A-Z]{1,4})?(\+[A-Z][0-9][0-9A-Z](\.[0-9A-Z]{1,4})?)?$`)
	nonKeyChars      = regexp.MustCompile(`[^a-z0-9]+`)
)

// Body is the body of a request to create or replace a template.
type Body struct {
	Key         validate.String                            `json:"key"`
	Name        validate.String                            `json:"name"`
	Diagnoses   validate.Field[[]validate.String]          `json:"diagnoses"`
	MinAge      validate.Integer                           `json:"min_age"`
	MaxAge      validate.Integer                           `json:"max_age"`
	Thresholds  validate.Field[alerts.ThresholdChangeBody] `json:"thresholds"`
	Sources     validate.Field[[]validate.String]          `json:"sources"`
	SignedOffBy validate.String                            `json:"signed_off_by"`
	SignedOffAt validate.String                            `json:"signed_off_at"`
}

// Draft is a validated [Body]: values by column. Columns that are not in it keep their values.
type Draft struct{ columns map[string]any }

// Read checks a body. Optional fields that a replacement omits keep their values. Source: docs/decisions/alerts.md, "Templates".
func (b Body) Read(c *validate.Checks, now time.Time) Draft {
	d := map[string]any{
		collections.TemplateName:   c.Text("name", b.Name, validate.Required(maxName)),
		collections.TemplateBounds: readBounds(c, b.Thresholds),
	}
	if b.Key.Sent() {
		rule := validate.Optional(maxKey).Identifier().Matching(keyPattern, "Must consist of lower-case letters, digits and underscores.")
		d[collections.TemplateKey] = c.Text("key", b.Key, rule)
	}
	if b.Diagnoses.Sent() {
		d[collections.TemplateDiagnoses] = readDiagnoses(c, b.Diagnoses)
	}
	if b.Sources.Sent() {
		d[collections.TemplateSources] = readTexts(c, "sources", b.Sources, maxSources, maxSource)
	}
	for name, f := range map[string]validate.Integer{collections.TemplateMinAge: b.MinAge, collections.TemplateMaxAge: b.MaxAge} {
		if f.Sent() {
			d[name] = readAge(c, name, f)
		}
	}
	b.readSignOff(c, d, now)
	return Draft{d}
}

func readBounds(c *validate.Checks, f validate.Field[alerts.ThresholdChangeBody]) string {
	if !f.Given() {
		if f.Sent() && !f.Null() {
			c.Reject("thresholds", "Must be an object.")
		} else {
			c.Reject("thresholds", "This field is required.")
		}
		return ""
	}
	text, err := f.Value.ReadBounds(c, "thresholds").Encode()
	if err != nil {
		c.Reject("thresholds", "Must be an object.")
	}
	return text
}

func readAge(c *validate.Checks, name string, f validate.Integer) any {
	age := c.Integer(name, f, false)
	switch {
	case age == nil:
		return nil
	case *age < 0 || *age > maxAge:
		c.Reject(name, fmt.Sprintf("Must be between 0 and %d.", maxAge))
		return nil
	}
	return float64(*age)
}

func readTexts(c *validate.Checks, name string, f validate.Field[[]validate.String], most, longest int) []string {
	texts := []string{}
	for _, text := range validate.Texts(c, name, f, most, "Must be a list of texts.", validate.Required(longest)) {
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// readDiagnoses reads codes or their prefixes.
func readDiagnoses(c *validate.Checks, f validate.Field[[]validate.String]) []string {
	for i := range f.Value {
		f.Value[i].Value = strings.ToUpper(f.Value[i].Value)
	}
	codes := readTexts(c, "diagnoses", f, maxCodes, maxKey)
	for i, code := range codes {
		if !diagnosisPattern.MatchString(code) {
			c.Reject(fmt.Sprintf("diagnoses.%d", i), "Must be an ICD-10-CM code or its category, such as I50, O13.3 or both of J44+Z99.81.")
		}
	}
	return codes
}

// readSignOff reads name and time, which belong together; the default time is now.
func (b Body) readSignOff(c *validate.Checks, d map[string]any, now time.Time) {
	if !b.SignedOffBy.Sent() && !b.SignedOffAt.Sent() {
		return
	}
	by := c.Text("signed_off_by", b.SignedOffBy, validate.Optional(254))
	at := c.Instant("signed_off_at", b.SignedOffAt, false)
	switch {
	case at.After(now):
		c.Reject("signed_off_at", "Must not be in the future.")
	case by == "" && !at.IsZero():
		c.Reject("signed_off_by", "This field is required with signed_off_at.")
	case by != "" && at.IsZero():
		at = now
	}
	d[collections.TemplateSignedOffBy], d[collections.TemplateSignedOffAt] = by, ""
	if !at.IsZero() {
		d[collections.TemplateSignedOffAt] = collections.FormatInstant(at)
	}
}

// Create stores a new template, with its audit entry. The hook on templates completes it ([Guard]).
func Create(app core.App, draft Draft, by audit.Actor, now time.Time) (t *collections.ThresholdTemplate, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if t, err = collections.NewThresholdTemplate(tx); err != nil {
			return err
		}
		return store(tx, t, draft, by, now)
	})
	return t, err
}

// Replace stores new values of a template. If nothing changes, nothing is written.
func Replace(app core.App, number int64, draft Draft, by audit.Actor, now time.Time) (t *collections.ThresholdTemplate, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if t, err = collections.FindThresholdTemplate(tx, number); err != nil {
			return fault.OrMissing(err)
		}
		return store(tx, t, draft, by, now)
	})
	return t, err
}

// Delete removes a template. Patients keep the bounds that it gave them.
func Delete(app core.App, number int64, by audit.Actor, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		t, err := collections.FindThresholdTemplate(tx, number)
		if err != nil {
			return fault.OrMissing(err)
		}
		before := contentOf(t)
		if err := tx.Delete(t); err != nil {
			return fmt.Errorf("delete threshold template: %w", err)
		}
		return auditTemplate(tx, t, before, nil, by, now)
	})
}

// store writes a draft into a template, stores and audits it.
func store(tx core.App, t *collections.ThresholdTemplate, draft Draft, by audit.Actor, now time.Time) error {
	var before map[string]string
	if !t.IsNew() {
		before = contentOf(t)
	}
	for column, value := range draft.columns {
		t.Set(column, value)
	}
	if err := completeTemplate(tx, t, now); err != nil {
		return asFault(err)
	}
	after := contentOf(t)
	if before != nil && slices.Equal(orderedValues(before), orderedValues(after)) {
		return nil
	}
	t.Set(collections.TemplateUpdatedBy, by.Email)
	if err := tx.Save(t); err != nil {
		return asFault(err)
	}
	return auditTemplate(tx, t, before, after, by, now)
}

// contentColumns are the audited columns of a template, in order; a change of any but the last two makes a new version.
var contentColumns = []string{
	collections.TemplateKey, collections.TemplateName, collections.TemplateDiagnoses, collections.TemplateMinAge, collections.TemplateMaxAge,
	collections.TemplateBounds, collections.TemplateSources, collections.TemplateSignedOffBy, collections.TemplateSignedOffAt,
}

// versioned are the columns that make a new version without a sign-off.
var versioned = contentColumns[:len(contentColumns)-2]

// contentOf returns a template's values by column.
func contentOf(t *collections.ThresholdTemplate) map[string]string {
	held := make(map[string]string, len(contentColumns))
	for _, column := range contentColumns {
		switch column {
		case collections.TemplateDiagnoses:
			held[column] = strings.Join(t.Diagnoses(), ", ")
		case collections.TemplateSources:
			held[column] = strings.Join(t.Sources(), "; ")
		case collections.TemplateBounds:
			held[column] = canonical(t.Bounds())
		default:
			held[column] = t.GetString(column)
		}
	}
	return held
}

// canonical returns one form for equal bounds.
func canonical(bounds string) string {
	parsed, err := alerts.ParseBounds(bounds)
	if err != nil {
		return bounds
	}
	text, err := json.Marshal(parsed)
	if err != nil {
		return bounds
	}
	return string(text)
}

func orderedValues(held map[string]string) []string {
	list := make([]string, len(contentColumns))
	for i, column := range contentColumns {
		list[i] = held[column]
	}
	return list
}

// auditTemplate appends the audit entry of a change; nil for a template that is new or deleted.
func auditTemplate(tx core.App, t *collections.ThresholdTemplate, before, after map[string]string, by audit.Actor, now time.Time) error {
	changes := audit.Changes{}
	for _, column := range contentColumns {
		changes.Record(column, before[column], after[column])
	}
	return audit.Append(tx, audit.Entry{
		Event: audit.SettingsUpdate, Actor: by, ResourceType: audit.ResourceThresholdTemplate, ResourceID: fmt.Sprint(t.Number()), Changes: changes,
	}, now)
}
