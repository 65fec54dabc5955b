package templates

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/fault"
)

// named are the columns that callers know by another name.
var named = map[string]string{collections.TemplateBounds: "thresholds"}

// Guard makes a template fit to be stored, whoever writes it. What is wrong comes back as [validation.Errors] by column.
func Guard(tx core.App, record *core.Record, now time.Time) error {
	return complete(tx, collections.AsThresholdTemplate(record), now)
}

// complete checks a template, and keeps key, version and sign-off: a change of what is applied makes another version, which somebody has to
// sign off anew. Doing it twice changes nothing more. Source: docs/decisions/alerts.md, "Templates".
func complete(tx core.App, t *collections.ThresholdTemplate, now time.Time) error {
	if err := check(t); err != nil {
		return err
	}
	if t.Key() == "" {
		key, err := freeKey(tx, t)
		if err != nil {
			return err
		}
		t.Set(collections.TemplateKey, key)
	} else if taken, err := collections.TemplateKeyTaken(tx, t.Key(), t.Id); err != nil {
		return err
	} else if taken {
		return wrong(collections.TemplateKey, "A template with this key exists already.")
	}
	if t.SignedOffBy() != "" && t.SignedOffAt().IsZero() {
		t.Set(collections.TemplateSignedOffAt, collections.Instant(now))
	}
	if t.IsNew() {
		t.Set(collections.TemplateVersion, 1)
		return nil
	}
	stored := collections.AsThresholdTemplate(t.ProxyRecord().Original())
	was, is := content(stored), content(t)
	t.Set(collections.TemplateVersion, stored.Version())
	changed := func(column string) bool { return was[column] != is[column] }
	if !slices.ContainsFunc(contents, changed) {
		return nil
	}
	t.Set(collections.ColumnUpdatedAt, collections.Instant(now))
	if !slices.ContainsFunc(versioned, changed) {
		return nil
	}
	t.Set(collections.TemplateVersion, stored.Version()+1)
	if !changed(collections.TemplateSignedOffBy) && !changed(collections.TemplateSignedOffAt) {
		t.Set(collections.TemplateSignedOffBy, "")
		t.Set(collections.TemplateSignedOffAt, "")
	}
	return nil
}

// check says what is wrong with the values of a template.
func check(t *collections.ThresholdTemplate) error {
	bounds, err := alerts.ParseBounds(t.Bounds())
	if err != nil {
		return wrong(collections.TemplateBounds, `Must be groups of bounds, such as {"pulse":{"high":120}}.`)
	}
	complaints := bounds.Complaints(func(string) bool { return false })
	for _, name := range slices.Sorted(maps.Keys(complaints)) {
		return wrong(collections.TemplateBounds, name+": "+complaints[name])
	}
	if bounds.Silent() {
		return wrong(collections.TemplateBounds, "Must have at least one bound.")
	}
	for _, code := range t.Diagnoses() {
		if !diagnosisPattern.MatchString(code) {
			return wrong(collections.TemplateDiagnoses, "Must be a list of ICD-10-CM codes or their categories, such as I50 or O13.3.")
		}
	}
	if least, most := t.MinAge(), t.MaxAge(); least != nil && most != nil && *most < *least {
		return wrong(collections.TemplateMaxAge, "Must not be less than min_age.")
	}
	if t.SignedOffBy() == "" && !t.SignedOffAt().IsZero() {
		return wrong(collections.TemplateSignedOffBy, "This field is required beside signed_off_at.")
	}
	return nil
}

// freeKey makes a key of the name, with a number when another has it.
func freeKey(tx core.App, t *collections.ThresholdTemplate) (string, error) {
	base := strings.Trim(notOfKeys.ReplaceAllString(strings.ToLower(t.Name()), "_"), "_")
	base = strings.TrimRight(base[:min(len(base), maxKey-4)], "_")
	if base == "" {
		base = "template"
	}
	for n := 1; ; n++ {
		key := base
		if n > 1 {
			key = fmt.Sprintf("%s_%d", base, n)
		}
		taken, err := collections.TemplateKeyTaken(tx, key, t.Id)
		if err != nil || !taken {
			return key, err
		}
	}
}

func wrong(column, message string) error {
	return validation.Errors{column: validation.NewError("validation_invalid_value", message)}
}

// asFault turns the complaints of a guard or a save into a fault with the names of the contract; other errors stay.
func asFault(err error) error {
	var complaints validation.Errors
	if !errors.As(err, &complaints) {
		return err
	}
	fields := fault.Fields{}
	for column, complaint := range complaints {
		name := column
		if other, has := named[column]; has {
			name = other
		}
		fields.Add(name, complaint.Error())
	}
	return fields.Err()
}
