package templates

import (
	"context"
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

// contractNames are the API's names of columns, where they differ.
var contractNames = map[string]string{collections.TemplateBounds: "thresholds"}

// Guard checks and completes a template before it is stored by any writer. Errors are [validation.Errors] by column.
func Guard(tx core.App, record *core.Record, now time.Time) error {
	return completeTemplate(tx, collections.AsThresholdTemplate(record), now)
}

// ProposeChanged proposes a stored or deleted template to all patients that it fits now, and to no one else, in the caller's transaction: a bound
// that is provisionally in force follows its template at once.
func ProposeChanged(tx core.App, record *core.Record, now time.Time, practice *time.Location) error {
	_, _, err := ProposeAll(context.Background(), tx, collections.AsThresholdTemplate(record).Number(), now, practice)
	return err
}

// completeTemplate validates a template and sets key, version and sign-off: a change of what is applied makes a new version that needs a
// new sign-off. It is idempotent. Source: docs/decisions/alerts.md, "Templates".
func completeTemplate(tx core.App, t *collections.ThresholdTemplate, now time.Time) error {
	if err := validateTemplate(t); err != nil {
		return err
	}
	if t.Key() == "" {
		key, err := uniqueKey(tx, t)
		if err != nil {
			return err
		}
		t.Set(collections.TemplateKey, key)
	} else if taken, err := collections.TemplateKeyTaken(tx, t.Key(), t.Id); err != nil {
		return err
	} else if taken {
		return columnError(collections.TemplateKey, "A template with this key exists already.")
	}
	if t.SignedOffBy() != "" && t.SignedOffAt().IsZero() {
		t.Set(collections.TemplateSignedOffAt, collections.FormatInstant(now))
	}
	if t.IsNew() {
		t.Set(collections.TemplateVersion, 1)
		return nil
	}
	stored := collections.AsThresholdTemplate(t.ProxyRecord().Original())
	was, is := contentOf(stored), contentOf(t)
	t.Set(collections.TemplateVersion, stored.Version())
	changed := func(column string) bool { return was[column] != is[column] }
	if !slices.ContainsFunc(contentColumns, changed) {
		return nil
	}
	t.Set(collections.ColumnUpdatedAt, collections.FormatInstant(now))
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

// validateTemplate checks the values of a template.
func validateTemplate(t *collections.ThresholdTemplate) error {
	bounds, err := alerts.ParseBounds(t.Bounds())
	if err != nil {
		return columnError(collections.TemplateBounds, `Must be groups of bounds, such as {"pulse":{"high":120}}.`)
	}
	complaints := bounds.Problems(func(string) bool { return false })
	for _, name := range slices.Sorted(maps.Keys(complaints)) {
		return columnError(collections.TemplateBounds, name+": "+complaints[name])
	}
	if bounds.IsEmpty() {
		return columnError(collections.TemplateBounds, "Must have at least one bound.")
	}
	for _, code := range t.Diagnoses() {
		if !diagnosisPattern.MatchString(code) {
			return columnError(collections.TemplateDiagnoses, "Must be a list of ICD-10-CM codes or their categories, such as I50 or O13.3.")
		}
	}
	if least, most := t.MinAge(), t.MaxAge(); least != nil && most != nil && *most < *least {
		return columnError(collections.TemplateMaxAge, "Must not be less than min_age.")
	}
	if t.SignedOffBy() == "" && !t.SignedOffAt().IsZero() {
		return columnError(collections.TemplateSignedOffBy, "This field is required with signed_off_at.")
	}
	return nil
}

// uniqueKey derives a key from the name, with a number if another template has it.
func uniqueKey(tx core.App, t *collections.ThresholdTemplate) (string, error) {
	base := strings.Trim(nonKeyChars.ReplaceAllString(strings.ToLower(t.Name()), "_"), "_")
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

func columnError(column, message string) error {
	return validation.Errors{column: validation.NewError("validation_invalid_value", message)}
}

// asFault turns validation errors into a fault with the contract's names; other errors are returned unchanged.
func asFault(err error) error {
	var complaints validation.Errors
	if !errors.As(err, &complaints) {
		return err
	}
	fields := fault.Fields{}
	for column, complaint := range complaints {
		name := column
		if other, has := contractNames[column]; has {
			name = other
		}
		fields.Add(name, complaint.Error())
	}
	return fields.Err()
}
