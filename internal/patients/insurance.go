package patients

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// InsuranceBody is the insurance member of a [Body]. It is replaced as a whole.
type InsuranceBody struct {
	coverageBody
	Secondary validate.Field[secondaryBody] `json:"secondary"`
	SelfPay   validate.Boolean              `json:"self_pay"`
}

// secondaryBody is the second insurance of a patient.
type secondaryBody struct {
	coverageBody
	MedicareSecondaryType validate.String `json:"medicare_secondary_type"`
}

// MedicareSecondaryTypes are the reasons for which Medicare is not the first payer. Source: ASC X12N 005010X222A1 (837P), SBR05.
var MedicareSecondaryTypes = []string{"12", "13", "14", "15", "16", "41", "42", "43", "47"}

// coverageBody is one insurance of a patient.
type coverageBody struct {
	PayerID      validate.Integer               `json:"payer_id"`
	MemberID     validate.String                `json:"member_id"`
	GroupNumber  validate.String                `json:"group_number"`
	Relationship validate.String                `json:"relationship"`
	Subscriber   validate.Field[subscriberBody] `json:"subscriber"`
}

type subscriberBody struct {
	FirstName   validate.String `json:"first_name"`
	LastName    validate.String `json:"last_name"`
	DateOfBirth validate.String `json:"date_of_birth"`
	Gender      validate.String `json:"gender"`
}

// Relationships are the patient's relationships to the subscriber. Source: ASC X12N 005010X222A1 (837P), SBR02 and PAT01, in plain words.
var Relationships = []string{"self", "spouse", "child", "other"}

// readInsurance reads the member into its columns. Data that a payer requires may be missing here: it is entered step by step, and preflight
// requires it before a claim is sent.
func readInsurance(c *validate.Checks, f validate.Field[InsuranceBody], today string, d map[string]any) {
	body, _ := validate.Nested(c, "insurance", f, msgObject)
	primary := readCoverage(c, "insurance", body.coverageBody, today)
	if second, ok := validate.Nested(c, "insurance.secondary", body.Secondary, msgObject); ok {
		primary.Secondary = readCoverage(c, "insurance.secondary", second.coverageBody, today)
		if primary.Secondary.Payer != 0 && primary.Secondary.Payer == primary.Payer {
			c.Reject("insurance.secondary.payer_id", "Must not be the first payer.")
		}
		primary.Secondary.MedicareSecondaryType = c.Text("insurance.secondary.medicare_secondary_type", second.MedicareSecondaryType,
			validate.Optional(0).OneOf(MedicareSecondaryTypes...))
	}
	if alone := c.Boolean("insurance.self_pay", body.SelfPay, false); alone != nil && *alone {
		if primary.SelfPay = primary.Payer == 0; !primary.SelfPay {
			c.Reject("insurance.self_pay", "A patient with a payer cannot be self-pay.")
		}
	}
	d[collections.PatientInsurancePayer], d[collections.PatientInsuranceMemberID] = primary.Payer, primary.MemberID
	primary.Payer, primary.MemberID = 0, ""
	details, err := primary.Plaintext()
	if err != nil {
		c.Reject("insurance", msgObject)
	}
	d[collections.PatientInsuranceDetails] = details
}

// groupPattern is what X12 can carry of a group number.
var groupPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ./_-]*$`)

func readCoverage(c *validate.Checks, name string, b coverageBody, today string) *phi.Coverage {
	covered := &phi.Coverage{
		Payer:        readNumber(c, name+".payer_id", b.PayerID, msgPayer),
		MemberID:     c.Text(name+".member_id", b.MemberID, validate.Optional(50).Identifier()),
		GroupNumber:  c.Text(name+".group_number", b.GroupNumber, validate.Optional(50).Identifier().Matching(groupPattern, "Must be letters, digits, spaces, dots, slashes and hyphens.")),
		Relationship: c.Text(name+".relationship", b.Relationship, validate.Optional(0).OneOf(Relationships...)),
	}
	name += ".subscriber"
	who, ok := validate.Nested(c, name, b.Subscriber, msgObject)
	if !ok {
		return covered
	}
	covered.Subscriber = &phi.Subscriber{
		FirstName:   c.Text(name+".first_name", who.FirstName, validate.Required(100)),
		LastName:    c.Text(name+".last_name", who.LastName, validate.Required(100)),
		DateOfBirth: c.Text(name+".date_of_birth", who.DateOfBirth, validate.Optional(0).Identifier()),
		Gender:      c.Text(name+".gender", who.Gender, validate.Optional(0).OneOf("male", "female", "other", "unknown")),
	}
	if born := covered.Subscriber.DateOfBirth; born != "" {
		if _, err := time.Parse(time.DateOnly, born); err != nil {
			c.Reject(name+".date_of_birth", "Must be a date in the form YYYY-MM-DD.")
		} else if born < "1900-01-01" || born > today {
			c.Reject(name+".date_of_birth", "Must be between 1900-01-01 and today.")
		}
	}
	return covered
}

// InsuranceView is the insurance of a [View].
type InsuranceView struct {
	CoverageView
	Secondary *SecondaryView `json:"secondary"`
	SelfPay   bool           `json:"self_pay"` // stated explicitly, not derived from a missing payer
}

// SecondaryView is the second insurance.
type SecondaryView struct {
	CoverageView
	MedicareSecondaryType *string `json:"medicare_secondary_type"`
}

// CoverageView is one insurance.
type CoverageView struct {
	PayerID      *int64          `json:"payer_id"`
	MemberID     *string         `json:"member_id"`
	GroupNumber  *string         `json:"group_number"`
	Relationship *string         `json:"relationship"`
	Subscriber   *SubscriberView `json:"subscriber"`
}

// SubscriberView is the subscriber of an insurance.
type SubscriberView struct {
	FirstName   string  `json:"first_name"`
	LastName    string  `json:"last_name"`
	DateOfBirth *string `json:"date_of_birth"`
	Gender      *string `json:"gender"`
}

// Format reveals nothing.
func (InsuranceView) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[insurance]") }

// LogValue reveals nothing.
func (InsuranceView) LogValue() slog.Value { return slog.StringValue("[insurance]") }

// Format reveals nothing.
func (CoverageView) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[insurance]") }

// LogValue reveals nothing.
func (CoverageView) LogValue() slog.Value { return slog.StringValue("[insurance]") }

// Format reveals nothing.
func (SubscriberView) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[subscriber]") }

// LogValue reveals nothing.
func (SubscriberView) LogValue() slog.Value { return slog.StringValue("[subscriber]") }

// viewInsurance returns the view of a coverage; nil for an empty one.
func viewInsurance(c phi.Coverage) *InsuranceView {
	if c == (phi.Coverage{}) {
		return nil
	}
	view := &InsuranceView{CoverageView: viewCoverage(c), SelfPay: c.SelfPay}
	if c.Secondary != nil {
		view.Secondary = &SecondaryView{viewCoverage(*c.Secondary), orNull(c.Secondary.MedicareSecondaryType)}
	}
	return view
}

func viewCoverage(c phi.Coverage) CoverageView {
	view := CoverageView{orNull(c.Payer), orNull(c.MemberID), orNull(c.GroupNumber), orNull(c.Relationship), nil}
	if s := c.Subscriber; s != nil {
		view.Subscriber = &SubscriberView{s.FirstName, s.LastName, orNull(s.DateOfBirth), orNull(s.Gender)}
	}
	return view
}

// insuranceMember returns the body's member for a patient's columns; a string if the details are damaged, which no check accepts.
func insuranceMember(p *collections.Patient) any {
	var member any
	covered, err := p.Coverage()
	if err != nil {
		return "unreadable"
	}
	view := viewInsurance(covered)
	if raw, err := json.Marshal(view); err != nil || json.Unmarshal(raw, &member) != nil {
		return "unreadable"
	}
	return member
}

// withNewMembership returns a merge patch of a coverage that, where it changes the payer, also removes what the patch does not name of the membership,
// since a member id or group number of one payer is none of another. Source: docs/decisions/patients.md, "PATCH semantics".
func withNewMembership(stored, patch jsontext.Value) (jsontext.Value, error) {
	members, isObject := membersIn(patch)
	if !isObject {
		return patch, nil
	}
	now, _ := membersIn(stored)
	payer, isNamed := members["payer_id"]
	if before := now["payer_id"]; isNamed && before != nil && before.Kind() != 'n' && !bytes.Equal(before, payer) {
		for _, name := range []string{"member_id", "group_number"} {
			if _, isKept := members[name]; !isKept {
				members[name] = jsontext.Value("null")
			}
		}
	}
	if second, isNamed := members["secondary"]; isNamed {
		var err error
		if members["secondary"], err = withNewMembership(now["secondary"], second); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return nil, fmt.Errorf("write a patch of an insurance: %w", err)
	}
	return raw, nil
}
