package patients_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var newYork = func() *time.Location {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	return zone
}()

// bodyWith is a valid body with some members replaced; the value omitted removes one.
func bodyWith(t testing.TB, changes map[string]any) patients.Body {
	t.Helper()
	members := map[string]any{"first_name": "Ada", "last_name": "Lovelace", "date_of_birth": "1955-12-10", "gender": "female"}
	maps.Copy(members, changes)
	maps.DeleteFunc(members, func(_ string, value any) bool { return value == omitted })
	raw, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	var body patients.Body
	if err := validate.DecodeObject(raw, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

const omitted = "\x00omitted"

type object = map[string]any

func home(changes object) object {
	address := object{"line1": "1 Main St", "city": "Springfield", "state": "IL", "zip": "62701"}
	maps.Copy(address, changes)
	return address
}

func TestReadComplaints(t *testing.T) {
	const (
		required = "This field is required."
		null     = "This field may not be null."
		blank    = "This field may not be blank."
		text     = "Not a valid string."
		integer  = "A valid integer is required."
		anObject = "Must be an object."
		control  = "Control characters are not allowed."
		mrn      = "Must start with a letter or digit and contain only letters, digits, dots, underscores and hyphens."
		ssn      = "Must have the form AAA-GG-SSSS or nine digits."
		area     = "The area number may not be 000, 666 or 900 to 999."
		phone    = "Must be a phone number of 7 to 20 characters with at least 7 digits; only digits, spaces and + ( ) - . x are allowed."
		email    = "Must be a valid e-mail address."
		born     = "Must be between 1900-01-01 and today."
		date     = "Must be a date in the form YYYY-MM-DD."
		zip      = "Must be a ZIP code: 12345 or 12345-6789."
		zone     = "Must be an IANA time zone name, such as America/New_York."
		provider = "Must be the id of an active provider."
		payer    = "Must be the id of a known payer."
		icd      = "Must be an ICD-10-CM code, such as I10 or E11.9."
		days     = "Must be one of: monday, tuesday, wednesday, thursday, friday, saturday, sunday."
	)
	longer := func(n int) string { return fmt.Sprintf("Ensure this field has no more than %d characters.", n) }
	a := func(n int) string { return strings.Repeat("a", n) }
	tests := []struct {
		member  string
		value   any
		field   string // member when empty
		message string
	}{
		{"first_name", omitted, "", required},
		{"first_name", nil, "", null},
		{"first_name", "  ", "", blank},
		{"first_name", 7, "", text},
		{"first_name", a(101), "", longer(100)},
		{"first_name", "A\x01da", "", control},
		{"last_name", omitted, "", required},
		{"last_name", nil, "", null},
		{"last_name", "", "", blank},
		{"last_name", a(101), "", longer(100)},
		{"date_of_birth", omitted, "", required},
		{"date_of_birth", nil, "", null},
		{"date_of_birth", 19551210, "", text},
		{"date_of_birth", "10.12.1955", "", date},
		{"date_of_birth", "1955-02-30", "", date},
		{"date_of_birth", "1955-12-10T00:00:00Z", "", date},
		{"date_of_birth", "1899-12-31", "", born},
		{"date_of_birth", "2026-01-16", "", born},
		{"gender", omitted, "", required},
		{"gender", "Female", "", "Must be one of: male, female, other, unknown."},
		{"gender", nil, "", null},
		{"mrn", nil, "", "This field may not be null."},
		{"mrn", a(51), "", longer(50)},
		{"mrn", "-1", "", mrn},
		{"mrn", "A 1", "", mrn},
		{"mrn", "Ä1", "", mrn},
		{"mrn", 1, "", text},
		{"phone", "123456", "", phone},
		{"phone", "+1 (555) 01", "", phone},
		{"phone", "555-0100 ext 2", "", phone},
		{"phone", strings.Repeat("5", 21), "", longer(20)},
		{"phone", 5550100, "", text},
		{"email", "ada", "", email},
		{"email", "ada@", "", email},
		{"email", "Ada <ada@x.test>", "", email},
		{"email", "a..b@x.test", "", email},
		{"email", "ada@-x.test", "", email},
		{"email", "ada lovelace@x.test", "", email},
		{"email", "äda@x.test", "", email},
		{"email", a(65) + "@x.test", "", email},
		{"email", a(250) + "@x.test", "", longer(254)},
		{"ssn", "12345678", "", ssn},
		{"ssn", "123-456789", "", ssn},
		{"ssn", "123 45 6789", "", ssn},
		{"ssn", 123456789, "", text},
		{"ssn", "000-12-3456", "", area},
		{"ssn", "666123456", "", area},
		{"ssn", "900-12-3456", "", area},
		{"ssn", "999-12-3456", "", area},
		{"ssn", "123-00-4567", "", "The group number may not be 00."},
		{"ssn", "123-45-0000", "", "The serial number may not be 0000."},
		{"external_id", a(101), "", longer(100)},
		{"external_id", 5, "", text},
		{"gateway_patient_id", a(101), "", longer(100)},
		{"gateway_patient_id", []int{}, "", text},
		{"time_zone", "Mars/Olympus", "", zone},
		{"time_zone", "Local", "", zone},
		{"time_zone", "../etc", "", zone},
		{"time_zone", 5, "", text},
		{"primary_provider_id", "7", "", integer},
		{"primary_provider_id", 1.5, "", integer},
		{"primary_provider_id", 0, "", provider},
		{"primary_provider_id", -1, "", provider},
		{"primary_provider_id", int64(1e15), "", provider},
		{"address", "1 Main St", "", anObject},
		{"address", []string{}, "", anObject},
		{"address", home(object{"line1": ""}), "address.line1", blank},
		{"address", object{}, "address.line1", required},
		{"address", object{"line1": "1 Main St"}, "address.city", required},
		{"address", home(object{"line1": a(201)}), "address.line1", longer(200)},
		{"address", home(object{"line2": a(201)}), "address.line2", longer(200)},
		{"address", home(object{"city": a(101)}), "address.city", longer(100)},
		{"address", home(object{"state": "I"}), "address.state", "Ensure this field has at least 2 characters."},
		{"address", home(object{"state": a(51)}), "address.state", longer(50)},
		{"address", home(object{"state": 5}), "address.state", text},
		{"address", home(object{"zip": "6270"}), "address.zip", zip},
		{"address", home(object{"zip": "62701-12"}), "address.zip", zip},
		{"address", home(object{"zip": 62701}), "address.zip", text},
		{"address", home(object{"country": "US", "zip": "SW1A 1AA"}), "address.zip", zip},
		{"address", home(object{"country": "GB", "zip": a(21)}), "address.zip", longer(20)},
		{"address", home(object{"country": "U"}), "address.country", "Ensure this field has at least 2 characters."},
		{"insurance", 5, "", anObject},
		{"insurance", object{"payer_id": "x"}, "insurance.payer_id", integer},
		{"insurance", object{"payer_id": 0}, "insurance.payer_id", payer},
		{"insurance", object{"member_id": a(51)}, "insurance.member_id", longer(50)},
		{"icd10_codes", "I10", "", "Must be a list of codes."},
		{"icd10_codes", []any{"I10", 5}, "icd10_codes.1", text},
		{"icd10_codes", []any{nil}, "icd10_codes.0", null},
		{"icd10_codes", []any{"hypertension"}, "icd10_codes.0", icd},
		{"icd10_codes", []any{"U07.1"}, "icd10_codes.0", icd},
		{"icd10_codes", strings.Split(strings.Repeat("I10 ", 13)[:51], " "), "", "Ensure this field has no more than 12 items."},
		{"monitoring_schedule", "daily", "", anObject},
		{"monitoring_schedule", object{"pulse": object{"per_day": 1}}, "", "Members must be among: blood_pressure, weight, pulse_oximetry, blood_glucose, body_temperature."},
		{"monitoring_schedule", object{"weight": 1}, "monitoring_schedule.weight", anObject},
		{"monitoring_schedule", object{"weight": object{}}, "monitoring_schedule.weight.per_day", required},
		{"monitoring_schedule", object{"weight": object{"per_day": 0}}, "monitoring_schedule.weight.per_day", "Must be between 1 and 8."},
		{"monitoring_schedule", object{"weight": object{"per_day": 9}}, "monitoring_schedule.weight.per_day", "Must be between 1 and 8."},
		{"monitoring_schedule", object{"weight": object{"per_day": 1, "days": "monday"}}, "monitoring_schedule.weight.days", "Must be a list of weekdays."},
		{"monitoring_schedule", object{"weight": object{"per_day": 1, "days": []any{}}}, "monitoring_schedule.weight.days", "Must name at least one weekday."},
		{"monitoring_schedule", object{"weight": object{"per_day": 1, "days": []any{"monday", "mon"}}}, "monitoring_schedule.weight.days.1", days},
	}
	for _, test := range tests {
		field := test.field
		if field == "" {
			field = test.member
		}
		t.Run(fmt.Sprintf("%s %.30v", field, test.value), func(t *testing.T) {
			c := validate.NewChecks()
			bodyWith(t, object{test.member: test.value}).Read(c, vigiltest.Clock, newYork)
			got := c.Fields[field]
			if len(got) != 1 || got[0] != test.message {
				t.Errorf("got %v, want %s: %s", c.Fields, field, test.message)
			}
		})
	}
}

func TestReadReportsEveryField(t *testing.T) {
	c := validate.NewChecks()
	bodyWith(t, object{"first_name": "", "gender": nil, "phone": "1", "address": object{"zip": "x"}}).Read(c, vigiltest.Clock, newYork)
	want := fault.Fields{
		"first_name": {"This field may not be blank."}, "gender": {"This field may not be null."},
		"phone":         {"Must be a phone number of 7 to 20 characters with at least 7 digits; only digits, spaces and + ( ) - . x are allowed."},
		"address.line1": {"This field is required."}, "address.city": {"This field is required."},
		"address.zip": {"Must be a ZIP code: 12345 or 12345-6789."},
	}
	if diff := cmp.Diff(want, c.Fields); diff != "" {
		t.Error(diff)
	}
}

func TestReadAccepts(t *testing.T) {
	for _, changes := range []object{
		{},
		{"phone": nil, "email": nil, "address": nil, "external_id": nil, "ssn": nil, "insurance": nil, "icd10_codes": nil, "monitoring_schedule": nil, "time_zone": nil, "primary_provider_id": nil, "gateway_patient_id": nil},
		{"mrn": "", "phone": "", "email": "", "ssn": "", "external_id": ""},
		{"date_of_birth": "1900-01-01"},
		{"date_of_birth": "2026-01-15"},
		{"email": `"ada lovelace"@x.test`},
		{"email": "a+b@[192.0.2.1]"},
		{"email": "ada@localhost"},
		{"email": strings.Repeat("a", 64) + "@x.test"},
		{"phone": "+1 (555) 010-0100x2"},
		{"phone": "5550100"},
		{"ssn": "899-99-9999"},
		{"ssn": "123456789"},
		{"address": object{"line1": "1 Main St", "city": "Springfield"}},
		{"address": home(object{"zip": "62701-1234", "line2": nil, "state": "Illinois"})},
		{"address": home(object{"country": "GB", "zip": "SW1A 1AA"})},
		{"icd10_codes": []any{"i10", "E11.9", "M1A.00X0"}},
		{"monitoring_schedule": object{}},
		{"monitoring_schedule": object{"weight": nil, "blood_glucose": object{"per_day": 8}}},
		{"unknown": "ignored"},
	} {
		c := validate.NewChecks()
		if bodyWith(t, changes).Read(c, vigiltest.Clock, newYork); c.Err() != nil {
			t.Errorf("%v: %v", changes, c.Fields)
		}
	}
}

func TestBirthDateUsesThePracticesDay(t *testing.T) {
	lateEvening := time.Date(2026, time.January, 16, 3, 0, 0, 0, time.UTC) // still the 15th in New York
	body := bodyWith(t, object{"date_of_birth": "2026-01-16"})
	c := validate.NewChecks()
	if body.Read(c, lateEvening, newYork); c.Err() == nil {
		t.Error("born tomorrow in New York")
	}
	c = validate.NewChecks()
	if body.Read(c, lateEvening, time.UTC); c.Err() != nil {
		t.Error(c.Fields)
	}
}

func TestReadReplacementKeepsTheMRN(t *testing.T) {
	for value, want := range map[any]string{nil: "This field may not be null.", " ": "This field may not be blank.", "A-1": "", omitted: ""} {
		c := validate.NewChecks()
		bodyWith(t, object{"mrn": value}).ReadReplacement(c, vigiltest.Clock, newYork)
		if got := strings.Join(c.Fields["mrn"], " "); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

func TestDraftRefusesToPrint(t *testing.T) {
	draft := bodyWith(t, object{"last_name": "Markedname"}).Read(validate.NewChecks(), vigiltest.Clock, newYork)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, draft) + fmt.Sprintf(verb, &draft); strings.Contains(text, "Markedname") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
	if raw, err := json.Marshal(draft); err == nil {
		t.Errorf("encoded as %s", raw)
	}
}
