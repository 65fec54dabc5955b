package patients

import (
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// FindByPhone returns the patients in any state with a phone number, in any spelling.
func FindByPhone(app core.App, phone phi.Text) ([]*collections.Patient, error) {
	value := PhoneForIndex(phone)
	if !isCompleteValue(collections.PatientPhone, value) {
		return nil, nil
	}
	index, err := collections.BlindIndex(collections.PatientPhone, value)
	if err != nil {
		return nil, err
	}
	ids, err := collections.PatientIDsByIndex(app, collections.PatientPhone, index)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return collections.PatientsByID(app, ids)
}

// PhoneForIndex returns the form of a phone number by which numbers are compared.
func PhoneForIndex(phone phi.Text) string {
	return normalizeForIndex(collections.PatientPhone, phone.Reveal())
}

// PhoneDigits returns the digits of a phone number. The "(0)" of +44 (0)7700 900009 is dialed within its country only and is left out; Italy's is
// dialed from abroad too. Source: ITU-T E.123, 2.5.
func PhoneDigits(number string) string {
	if number = strings.TrimSpace(number); strings.HasPrefix(number, "+") && !strings.HasPrefix(number, "+39") {
		number = strings.Replace(number, "(0)", "", 1)
	}
	return validate.Digits(number)
}
