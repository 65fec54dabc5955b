package patients

import (
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Body is the body of a request to create or replace a patient.
type Body struct {
	FirstName          validate.String                                     `json:"first_name"`
	LastName           validate.String                                     `json:"last_name"`
	DateOfBirth        validate.String                                     `json:"date_of_birth"`
	Gender             validate.String                                     `json:"gender"`
	MRN                validate.String                                     `json:"mrn"`
	Phone              validate.String                                     `json:"phone"`
	Email              validate.String                                     `json:"email"`
	Address            validate.Field[AddressBody]                         `json:"address"`
	SSN                validate.String                                     `json:"ssn"`
	ExternalID         validate.String                                     `json:"external_id"`
	GatewayPatientID   validate.String                                     `json:"gateway_patient_id"`
	TimeZone           validate.String                                     `json:"time_zone"`
	PrimaryProviderID  validate.Integer                                    `json:"primary_provider_id"`
	Insurance          validate.Field[InsuranceBody]                       `json:"insurance"`
	ReferringProvider  validate.Field[PractitionerBody]                    `json:"referring_provider"`
	ICD10Codes         validate.Field[[]validate.String]                   `json:"icd10_codes"`
	MonitoringSchedule validate.Field[map[string]validate.Field[kindBody]] `json:"monitoring_schedule"`
	PreferredLanguage  validate.String                                     `json:"preferred_language"`
	Messaging          validate.Field[MessagingBody]                       `json:"messaging"`
	ReminderAt         validate.String                                     `json:"reminder_at"`
}

// AddressBody is the address member of a [Body].
type AddressBody struct {
	Line1   validate.String `json:"line1"`
	Line2   validate.String `json:"line2"`
	City    validate.String `json:"city"`
	State   validate.String `json:"state"`
	Zip     validate.String `json:"zip"`
	Country validate.String `json:"country"`
}

type kindBody struct {
	PerDay validate.Integer                  `json:"per_day"`
	Days   validate.Field[[]validate.String] `json:"days"`
	Others validate.UnknownMembers           `json:",embed"`
}

// Draft is a validated [Body]: values by column. Columns that are not in it keep their values. It refuses to print.
type Draft struct{ columns map[string]any }

// Format and LogValue reveal nothing.
func (Draft) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[patient draft]") }
func (Draft) LogValue() slog.Value       { return slog.StringValue("[patient draft]") }

// MarshalJSON refuses.
func (Draft) MarshalJSON() ([]byte, error) {
	return nil, errors.New("patients: a draft is not encoded")
}

func (d Draft) applyTo(p *collections.Patient) {
	for column, value := range d.columns {
		p.Set(column, value)
	}
}

// Read checks the body of a new patient and returns the values to store. Errors are reported to c under the contract's names, dotted if
// nested ("address.zip", "icd10_codes.0"). The latest date of birth is today in the practice's time zone.
// Source: docs/decisions/patients.md, "SSN", "MRN", "Field formats", docs/decisions/limits.md, "Maximum lengths" and
// docs/decisions/devices.md, "Measurement schedule".
func (b Body) Read(c *validate.Checks, now time.Time, practice *time.Location) Draft {
	d := map[string]any{
		collections.PatientFirstName:   c.Text("first_name", b.FirstName, validate.Required(100)),
		collections.PatientLastName:    c.Text("last_name", b.LastName, validate.Required(100)),
		collections.PatientDateOfBirth: readBirthDate(c, b.DateOfBirth, now.In(practice).Format(time.DateOnly)),
		collections.PatientGender:      c.Text("gender", b.Gender, validate.Required(0).OneOf("male", "female", "other", "unknown")),
		collections.PatientPhone:       c.Phone("phone", b.Phone),
		collections.PatientEmail:       readEmail(c, b.Email),
		collections.PatientAddress:     readAddress(c, b.Address),
	}
	// Omitted members stay out of the draft, so that a replacement keeps the stored values.
	validate.NotNull(c, "mrn", b.MRN)
	if b.MRN.Sent() {
		d[collections.PatientMRN] = c.Text("mrn", b.MRN, validate.Optional(50).Identifier().Matching(validate.MRNPattern,
			"Must start with a letter or digit and contain only letters, digits, dots, underscores and hyphens."))
	}
	if b.SSN.Sent() {
		d[collections.PatientSSN] = readSSN(c, b.SSN)
	}
	if b.ExternalID.Sent() {
		b.ExternalID.Value = strings.TrimPrefix(strings.TrimSpace(b.ExternalID.Value), "Patient/")
		d[collections.PatientExternalID] = c.Text("external_id", b.ExternalID, validate.Optional(100).Identifier())
	}
	if b.GatewayPatientID.Sent() {
		d[collections.PatientGatewayID] = c.Text("gateway_patient_id", b.GatewayPatientID, validate.Optional(100).Identifier())
	}
	if b.TimeZone.Sent() {
		d[collections.PatientTimeZone] = c.TimeZone("time_zone", b.TimeZone)
	}
	if b.PrimaryProviderID.Sent() {
		d[collections.PatientPrimaryProvider] = ""
		if id := readNumber(c, "primary_provider_id", b.PrimaryProviderID, msgProvider); id > 0 {
			d[collections.PatientPrimaryProvider] = collections.NumberID(id)
		}
	}
	if b.Insurance.Sent() {
		readInsurance(c, b.Insurance, now.In(practice).Format(time.DateOnly), d)
	}
	if b.ReferringProvider.Sent() {
		d[collections.PatientReferringProvider] = practitioner(c, "referring_provider", b.ReferringProvider).Plaintext()
	}
	if b.ICD10Codes.Sent() {
		d[collections.PatientICD10Codes] = readICD10Codes(c, b.ICD10Codes)
	}
	if b.MonitoringSchedule.Sent() {
		d[collections.PatientMonitoringSchedule] = readSchedule(c, b.MonitoringSchedule)
	}
	readMessaging(c, b, d)
	return Draft{d}
}

// ReadReplacement checks the body that replaces a patient: as [Body.Read], except that a stored MRN can be omitted but not removed.
// Source: docs/decisions/patients.md, "PUT semantics".
func (b Body) ReadReplacement(c *validate.Checks, now time.Time, practice *time.Location) Draft {
	if b.MRN.Given() && strings.TrimSpace(b.MRN.Value) == "" {
		c.Reject("mrn", "This field may not be blank.")
	}
	return b.Read(c, now, practice)
}

// readAddress returns the sealed form of an address; "" for none.
func readAddress(c *validate.Checks, f validate.Field[AddressBody]) string {
	body, ok := validate.Nested(c, "address", f, msgObject)
	if !ok {
		return ""
	}
	validate.NotNull(c, "address.country", body.Country)
	a := &phi.Address{
		Line1:   c.Text("address.line1", body.Line1, validate.Required(200)),
		Line2:   c.Text("address.line2", body.Line2, validate.Optional(200)),
		City:    c.Text("address.city", body.City, validate.Required(100)),
		State:   c.Text("address.state", body.State, validate.Optional(50)),
		Country: country(c, body.Country),
	}
	if len([]rune(a.State)) == 1 {
		c.Reject("address.state", "Ensure this field has at least 2 characters.")
	}
	if a.Country == "US" {
		if upper := strings.ToUpper(a.State); slices.Contains(stateCodes, upper) {
			a.State = upper
		}
		a.Zip = c.Text("address.zip", body.Zip, validate.Optional(0).Identifier().Matching(zipPattern, "Must be a ZIP code: 12345 or 12345-6789."))
	} else {
		a.Zip = c.Text("address.zip", body.Zip, validate.Optional(20))
	}
	text, err := a.Plaintext()
	if err != nil {
		c.Reject("address", msgObject)
	}
	return text
}

// readICD10Codes returns the codes in upper case, without duplicates.
func readICD10Codes(c *validate.Checks, f validate.Field[[]validate.String]) []string {
	codes := []string{}
	for name, code := range validate.Texts(c, "icd10_codes", f, maxCodes, "Must be a list of codes.", validate.Required(0).Identifier()) {
		if code = strings.ToUpper(code); !validate.ValidICD10(code) {
			c.Reject(name, "Must be an ICD-10-CM code, such as I10 or E11.9.")
		} else if !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	return codes
}

// readSchedule returns nil for null, which means one reading a day of each assigned device.
func readSchedule(c *validate.Checks, f validate.Field[map[string]validate.Field[kindBody]]) any {
	kinds, ok := validate.Nested(c, "monitoring_schedule", f, msgObject)
	if !ok {
		return nil
	}
	expected := collections.Schedule{}
	for kind, field := range kinds {
		if !vitals.Kind(kind).Valid() {
			c.Reject("monitoring_schedule", fmt.Sprintf("Members must be among: %s.", strings.Join(vitals.KindNames, ", ")))
			return nil // report it once
		}
		if field.Null() {
			continue
		}
		name := "monitoring_schedule." + kind
		if body, ok := validate.Nested(c, name, field, msgObject); ok {
			c.RejectUnknown(name+".", body.Others)
			expected[kind] = collections.Expectation{PerDay: perDay(c, name+".per_day", body.PerDay), Days: weekdays(c, name+".days", body.Days)}
		}
	}
	return expected
}

// Patch is a merge patch of a [Body], by member. It refuses to print. Source: RFC 7396; docs/decisions/patients.md, "PATCH semantics".
type Patch map[string]jsontext.Value

// Format and LogValue reveal nothing. MarshalJSON always fails.
func (Patch) Format(s fmt.State, _ rune)   { _, _ = io.WriteString(s, "[patient patch]") }
func (Patch) LogValue() slog.Value         { return slog.StringValue("[patient patch]") }
func (Patch) MarshalJSON() ([]byte, error) { return Draft{}.MarshalJSON() }

// Precondition must hold for a stored patient before a change.
type Precondition func(tx core.App, p *collections.Patient) error

// ApplyPatch merges a patch into a patient who is not deleted, validates the result as a replacement, and stores the patched members.
func ApplyPatch(app core.App, id string, patch Patch, by audit.Actor, now time.Time, practice *time.Location, conditions ...Precondition) (*collections.Patient, error) {
	p, err := update(app, id, by, now, conditions, func(p *collections.Patient) error {
		body, err := patch.bodyFor(p)
		if err != nil {
			return err
		}
		checks := validate.NewChecks()
		draft := body.ReadReplacement(checks, now, practice)
		if err := checks.Err(); err != nil {
			return err
		}
		patch.restrict(draft).applyTo(p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("change patient: %w", err)
	}
	return p, nil
}

// bodyFor returns the body of the patched patient. A removed member is null, to distinguish it from an omitted one.
func (patch Patch) bodyFor(p *collections.Patient) (body Body, err error) {
	readable := slices.DeleteFunc(slices.Clone(bodyColumns), func(column string) bool { return column == collections.PatientSSN })
	whole := map[string]jsontext.Value{}
	raw, err := json.Marshal(membersOf(p, readable))
	if err == nil {
		err = validate.DecodeMember(raw, &whole)
	}
	if err != nil {
		return body, fmt.Errorf("write a patient as a body: %w", err)
	}
	for name, value := range patch {
		if name == "insurance" {
			if value, err = withNewMembership(whole[name], value); err != nil {
				return body, err
			}
		}
		if whole[name], err = merge(whole[name], value); err != nil {
			return body, err
		}
	}
	if raw, err = json.Marshal(whole); err != nil {
		return body, fmt.Errorf("write a patched patient: %w", err)
	}
	return body, validate.DecodeObject(raw, &body)
}

// merge applies a merge patch to a value, which may be empty. Libraries implement the other kind of patch or convert numbers.
// Source: RFC 7396, section 2.
func merge(target, patch jsontext.Value) (jsontext.Value, error) {
	members, ok := membersIn(patch)
	if !ok {
		return patch, nil
	}
	whole, ok := membersIn(target)
	if !ok {
		whole = map[string]jsontext.Value{}
	}
	for name, value := range members {
		if value.Kind() == 'n' {
			delete(whole, name)
			continue
		}
		merged, err := merge(whole[name], value)
		if err != nil {
			return nil, err
		}
		whole[name] = merged
	}
	raw, err := json.Marshal(whole)
	if err != nil {
		return nil, fault.New(fault.Invalid, "parse_error", "The request body is not a valid JSON object.").Because(err)
	}
	return raw, nil
}

func membersIn(value jsontext.Value) (members map[string]jsontext.Value, ok bool) {
	if value.Kind() != '{' {
		return nil, false
	}
	return members, validate.DecodeMember(value, &members) == nil
}

// restrict removes the columns that the patch does not name.
func (patch Patch) restrict(d Draft) Draft {
	columns := maps.Clone(d.columns)
	maps.DeleteFunc(columns, func(column string, _ any) bool {
		member := contractName(column)
		if slices.Contains(insuranceColumns, column) {
			member = "insurance"
		}
		_, about := patch[member]
		return !about
	})
	return Draft{columns}
}
