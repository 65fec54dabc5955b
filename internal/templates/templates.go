// Package templates knows sets of thresholds for patients of a kind: what a valid one is, which is proposed to whom, and how a patient is
// given one. A template is a starting point that a clinician applies; from then on the bounds are the patient's own. It refuses to know
// how a reading is judged.
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

// What a template may hold.
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
	diagnosisPattern = regexp.MustCompile(`^[A-Z][0-9][0-9A-Z](\.[0-9A-Z]{1,4})?$`)
	notOfKeys        = regexp.MustCompile(`[^a-z0-9]+`)
)

// Body is the body of a request to make or replace a template.
type Body struct {
	Key         validate.String                   `json:"key"`
	Name        validate.String                   `json:"name"`
	Diagnoses   validate.Field[[]validate.String] `json:"diagnoses"`
	MinAge      validate.Integer                  `json:"min_age"`
	MaxAge      validate.Integer                  `json:"max_age"`
	Thresholds  validate.Field[alerts.ChangeBody] `json:"thresholds"`
	Sources     validate.Field[[]validate.String] `json:"sources"`
	SignedOffBy validate.String                   `json:"signed_off_by"`
	SignedOffAt validate.String                   `json:"signed_off_at"`
}

// Draft is a body that was found valid: what to write into which column. Columns that are not in it keep what they hold.
type Draft struct{ columns map[string]any }

// Read checks a body. What is optional and left out of a replacement stays. Source: docs/decisions/alerts.md, "Templates".
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

func readBounds(c *validate.Checks, f validate.Field[alerts.ChangeBody]) string {
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

// readDiagnoses: codes, or what they begin with.
func readDiagnoses(c *validate.Checks, f validate.Field[[]validate.String]) []string {
	for i := range f.Value {
		f.Value[i].Value = strings.ToUpper(f.Value[i].Value)
	}
	codes := readTexts(c, "diagnoses", f, maxCodes, maxKey)
	for i, code := range codes {
		if !diagnosisPattern.MatchString(code) {
			c.Reject(fmt.Sprintf("diagnoses.%d", i), "Must be an ICD-10-CM code or its category, such as I50 or O13.3.")
		}
	}
	return codes
}

// readSignOff: who and when go together; without a time it is now.
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
		c.Reject("signed_off_by", "This field is required beside signed_off_at.")
	case by != "" && at.IsZero():
		at = now
	}
	d[collections.TemplateSignedOffBy], d[collections.TemplateSignedOffAt] = by, ""
	if !at.IsZero() {
		d[collections.TemplateSignedOffAt] = collections.Instant(at)
	}
}

// Create stores a new template, with its audit entry. The hook on templates does the rest ([Guard]).
func Create(app core.App, draft Draft, by audit.Actor, now time.Time) (t *collections.ThresholdTemplate, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if t, err = collections.NewThresholdTemplate(tx); err != nil {
			return err
		}
		return store(tx, t, draft, by, now)
	})
	return t, err
}

// Replace stores new values of a template. One that changes nothing leaves no trace.
func Replace(app core.App, number int64, draft Draft, by audit.Actor, now time.Time) (t *collections.ThresholdTemplate, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if t, err = collections.FindThresholdTemplate(tx, number); err != nil {
			return fault.OrMissing(err)
		}
		return store(tx, t, draft, by, now)
	})
	return t, err
}

// Delete removes a template. Whoever was given it keeps the bounds.
func Delete(app core.App, number int64, by audit.Actor, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		t, err := collections.FindThresholdTemplate(tx, number)
		if err != nil {
			return fault.OrMissing(err)
		}
		before := content(t)
		if err := tx.Delete(t); err != nil {
			return fmt.Errorf("delete threshold template: %w", err)
		}
		return note(tx, t, before, nil, by, now)
	})
}

// store writes a draft into a template, stores it and notes what is new.
func store(tx core.App, t *collections.ThresholdTemplate, draft Draft, by audit.Actor, now time.Time) error {
	var before map[string]string
	if !t.IsNew() {
		before = content(t)
	}
	for column, value := range draft.columns {
		t.Set(column, value)
	}
	if err := complete(tx, t, now); err != nil {
		return asFault(err)
	}
	after := content(t)
	if before != nil && slices.Equal(values(before), values(after)) {
		return nil
	}
	t.Set(collections.TemplateUpdatedBy, by.Email)
	if err := tx.Save(t); err != nil {
		return asFault(err)
	}
	return note(tx, t, before, after, by, now)
}

// contents are the columns of which a change is one of the template, in order; all but the last two make another version.
var contents = []string{
	collections.TemplateKey, collections.TemplateName, collections.TemplateDiagnoses, collections.TemplateMinAge, collections.TemplateMaxAge,
	collections.TemplateBounds, collections.TemplateSources, collections.TemplateSignedOffBy, collections.TemplateSignedOffAt,
}

// versioned are those of which a change makes another version, which nobody has signed off yet.
var versioned = contents[:len(contents)-2]

// content is what a template holds, by column.
func content(t *collections.ThresholdTemplate) map[string]string {
	held := make(map[string]string, len(contents))
	for _, column := range contents {
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

// canonical is one form for bounds that say the same.
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

func values(held map[string]string) []string {
	list := make([]string, len(contents))
	for i, column := range contents {
		list[i] = held[column]
	}
	return list
}

// note appends the audit entry of a change; nil for what was not there before, or is not any more.
func note(tx core.App, t *collections.ThresholdTemplate, before, after map[string]string, by audit.Actor, now time.Time) error {
	changes := audit.Changes{}
	for _, column := range contents {
		changes.Note(column, before[column], after[column])
	}
	return audit.Append(tx, audit.Entry{
		Event: audit.SettingsUpdate, Actor: by, ResourceType: audit.ResourceThresholdTemplate, ResourceID: fmt.Sprint(t.Number()), Changes: changes,
	}, now)
}
