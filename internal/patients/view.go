package patients

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// The states of a patient as the contract names them.
const (
	StatusActive   = "active"
	StatusArchived = "archived"
)

// View is a patient as one role may see it. It is only for encoding as JSON and refuses to print.
type View struct {
	ID                 string               `json:"id"`
	FirstName          *string              `json:"first_name"`
	LastName           *string              `json:"last_name"`
	DateOfBirth        *string              `json:"date_of_birth"`
	Gender             string               `json:"gender"`
	MRN                string               `json:"mrn"`
	Active             bool                 `json:"active"`
	Phone              *string              `json:"phone"`
	Email              *string              `json:"email"`
	Address            *AddressView         `json:"address"`
	ExternalID         *string              `json:"external_id"`
	CreatedAt          *string              `json:"created_at"`
	UpdatedAt          *string              `json:"updated_at"`
	Status             string               `json:"status"`
	ArchivedAt         *string              `json:"archived_at"`
	ArchivedBy         *string              `json:"archived_by"`
	ArchiveReason      *string              `json:"archive_reason"`
	UnarchivedAt       *string              `json:"unarchived_at"`
	UnarchivedBy       *string              `json:"unarchived_by"`
	TimeZone           *string              `json:"time_zone"`
	PrimaryProviderID  *int64               `json:"primary_provider_id"`
	GatewayPatientID   *string              `json:"gateway_patient_id"`
	Insurance          *InsuranceView       `json:"insurance"`
	ReferringProvider  *PractitionerView    `json:"referring_provider"`
	MonitoringSchedule collections.Schedule `json:"monitoring_schedule"`
	ICD10Codes         []string             `json:"icd10_codes"`
	Programs           []string             `json:"programs"`
	SSNLast4           *string              `json:"ssn_last4"`
	NeedsThresholds    bool                 `json:"needs_thresholds"`
	NeedsTargetWeight  bool                 `json:"needs_target_weight"`
	ProposedTargetKg   *float64             `json:"proposed_target_kg"`
	ProposedTemplate   *int64               `json:"proposed_template"`
	// Provisional are bounds of undecided templates that are in force, to be decided on by DecideBy.
	ProposedTemplates []int64                   `json:"proposed_templates"`
	Provisional       []alerts.ProvisionalBound `json:"provisional"`
	DecideBy          *string                   `json:"decide_by"`
	Hold              *PatientHoldView          `json:"hold"`
	DeceasedAt        *string                   `json:"deceased_at"`
	EffectiveAt       *string                   `json:"effective_at"`
	PreferredLanguage *string                   `json:"preferred_language"`
	Messaging         MessagingView             `json:"messaging"`
	ReminderAt        *string                   `json:"reminder_at"`
	RedactedFields    []string                  `json:"redacted_fields"`
	DeletedAt         *string                   `json:"deleted_at,omitempty"`
	DeletedBy         *string                   `json:"deleted_by,omitempty"`
}

// AddressView is the address of a [View].
type AddressView struct {
	Line1   string  `json:"line1"`
	Line2   *string `json:"line2"`
	City    string  `json:"city"`
	State   *string `json:"state"`
	Zip     *string `json:"zip"`
	Country string  `json:"country"`
}

// Format and LogValue reveal nothing.
func (View) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[patient]") }
func (View) LogValue() slog.Value       { return slog.StringValue("[patient]") }

// Format reveals nothing.
func (AddressView) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[address]") }

// LogValue reveals nothing.
func (AddressView) LogValue() slog.Value { return slog.StringValue("[address]") }

// NewView returns the patient as the role may see it, with the hold in force: hidden fields are null and named in redacted_fields. It fails if
// any value cannot be opened. The caller adds what other records hold, such as [AddMessagingConsent].
func NewView(p *collections.Patient, role authz.Role, now time.Time) (View, error) {
	if err := collections.Readable(p.ProxyRecord()); err != nil {
		return View{}, err
	}
	who := p.Demographics()
	v := View{
		ID:                 p.Id,
		FirstName:          orNull(who.FirstName),
		LastName:           orNull(who.LastName),
		DateOfBirth:        orNull(who.DateOfBirth),
		Gender:             p.Gender(),
		MRN:                p.MRN(),
		Active:             p.Active(),
		Phone:              orNull(who.Phone),
		Email:              orNull(who.Email),
		ExternalID:         orNull(p.ExternalID()),
		CreatedAt:          instant(p.CreatedAt()),
		UpdatedAt:          instant(p.UpdatedAt()),
		Status:             Status(p),
		ArchivedAt:         instant(p.ArchivedAt()),
		ArchivedBy:         orNull(p.ArchivedBy()),
		ArchiveReason:      orNull(p.ArchiveReason().Reveal()),
		UnarchivedAt:       instant(p.UnarchivedAt()),
		UnarchivedBy:       orNull(p.UnarchivedBy()),
		TimeZone:           orNull(p.TimeZone()),
		PrimaryProviderID:  orNull(p.PrimaryProviderID()),
		GatewayPatientID:   orNull(p.GatewayPatientID()),
		MonitoringSchedule: p.MonitoringSchedule(),
		ICD10Codes:         append([]string{}, p.ICD10Codes()...),
		ProposedTemplates:  []int64{},
		Provisional:        []alerts.ProvisionalBound{},
		Programs:           append([]string{}, p.Programs()...),
		Hold:               viewPatientHold(p, role, now),
		DeceasedAt:         orNull(p.DeceasedAt()),
		EffectiveAt:        instant(p.EffectiveAt()),
		PreferredLanguage:  orNull(p.PreferredLanguage()),
		ReminderAt:         orNull(p.ReminderAt()),
		RedactedFields:     []string{},
		DeletedAt:          instant(p.DeletedAt()),
		DeletedBy:          orNull(p.DeletedBy()),
	}
	v.Messaging = viewMessaging(p)
	if a := who.Address; a != nil {
		v.Address = &AddressView{Line1: a.Line1, Line2: orNull(a.Line2), City: a.City, State: orNull(a.State), Zip: orNull(a.Zip), Country: a.Country}
	}
	covered, err := p.Coverage()
	if err != nil {
		return View{}, err
	}
	v.Insurance = viewInsurance(covered)
	referring, err := p.ReferringProvider()
	if err != nil {
		return View{}, err
	}
	v.ReferringProvider = ViewPractitioner(referring)
	v.SSNLast4 = orNull(lastFour(who.SSN))
	v.redact(role)
	return v, nil
}

// redact hides what the role may not see; an unknown role sees the least.
// Source: docs/decisions/patients.md, "Who sees demographics"; the names of staff from a portal user by docs/decisions/roles.md, "Endpoint permissions".
func (v *View) redact(role authz.Role) {
	hide := func(name string, field **string) {
		*field = nil
		v.RedactedFields = append(v.RedactedFields, name)
	}
	clinical := isClinical(role)
	if !clinical && role != authz.Patient && role != authz.Client {
		hide("phone", &v.Phone)
		hide("email", &v.Email)
		v.Address = nil
		v.RedactedFields = append(v.RedactedFields, "address")
	}
	if !clinical && role != authz.DataMonitor {
		hide("archived_by", &v.ArchivedBy)
		hide("unarchived_by", &v.UnarchivedBy)
	}
	if role != authz.Admin && role != authz.ClinicalManager && role != authz.DataMonitor {
		hide("ssn_last4", &v.SSNLast4)
	}
}

func isClinical(role authz.Role) bool {
	switch role {
	case authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA:
		return true
	}
	return false
}

// Status returns the patient's state by its contract name.
func Status(p *collections.Patient) string {
	if p.Active() {
		return StatusActive
	}
	return StatusArchived
}

// orNull returns nil for the zero value, which the database uses for null.
func orNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

func instant(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	return orNull(validate.FormatInstant(at))
}

// Name is what lists show of a patient. It refuses to print.
type Name struct{ collections.PatientName }

// Format and LogValue reveal nothing. MarshalJSON always fails.
func (Name) Format(s fmt.State, _ rune)   { _, _ = io.WriteString(s, "[name]") }
func (Name) LogValue() slog.Value         { return slog.StringValue("[name]") }
func (Name) MarshalJSON() ([]byte, error) { return nil, errors.New("patients: a name is not encoded") }

// Readable reports whether the name could be opened.
func (n Name) Readable() bool { return !n.Unreadable }

// LastFirst returns "Lovelace, Ada", the form in claims.
func (n Name) LastFirst() string {
	if n.Unreadable {
		return collections.UnreadableText
	}
	return strings.TrimSuffix(strings.TrimPrefix(n.Last.Reveal()+", "+n.First.Reveal(), ", "), ", ")
}

// Names opens the names of the given patients, of any state, with one query; unknown ids are omitted.
func Names(app core.App, ids []string) (map[string]Name, error) {
	found, err := collections.PatientNames(app, ids)
	if err != nil {
		return nil, err
	}
	names := make(map[string]Name, len(found))
	for _, n := range found {
		names[n.ID] = Name{n}
	}
	return names, nil
}

// Phones opens the phone numbers of the given patients with one query, if the role may see them; patients without one are omitted.
// Source: docs/decisions/patients.md, "Who sees demographics".
func Phones(app core.App, ids []string, role authz.Role) (map[string]phi.Text, error) {
	if len(ids) == 0 || !isClinical(role) {
		return nil, nil
	}
	return collections.PatientPhones(app, ids)
}
