package auth

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// NewAccount holds the values of an account to create.
type NewAccount struct {
	Email, FirstName, LastName string
	Role                       authz.Role
	Password                   string
	// PatientID links a portal account to its patient.
	PatientID                                  string
	TimeZone, NPI, Taxonomy, Credential, Phone string
	MustChangePassword                         bool
	// IsUnconfirmed: the identity provider has not confirmed the email address. The account has no
	// local password and cannot reset one.
	IsUnconfirmed bool
}

// CreateAccount stores and audits a new active account. An address in use is a validation fault.
func CreateAccount(app core.App, a NewAccount, by audit.Actor, now time.Time) (created *collections.User, err error) {
	fields := fault.Fields{}
	a.check(app, fields)
	if err := fields.Err(); err != nil {
		return nil, err
	}
	hash, err := hashPassword(app, a.Password)
	if err != nil {
		return nil, err
	}
	err = app.RunInTransaction(func(tx core.App) error {
		created, err = a.store(tx, hash, by, now)
		return err
	})
	return created, err
}

// check adds the field errors that need no lookup.
func (a NewAccount) check(app core.App, fields fault.Fields) {
	if !validEmail(FoldEmail(a.Email)) {
		fields.Add("email", msgEmail)
	}
	if !a.Role.Valid() {
		fields.Add("role", "Not one of the seven roles.")
	}
	for _, broken := range PasswordProblems(app, a.Password, Owner{a.Email, a.FirstName, a.LastName}) {
		fields.Add("password", broken)
	}
}

// store checks the address and the patient link, and stores the account. The caller holds a transaction.
func (a NewAccount) store(tx core.App, hash string, by audit.Actor, now time.Time) (*collections.User, error) {
	email := FoldEmail(a.Email)
	if _, err := collections.FindUserByEmail(tx, email); err == nil {
		return nil, fault.Field("email", "A user with this email already exists.")
	} else if !collections.IsNotFound(err) {
		return nil, err
	}
	if err := checkPatientLink(tx, a.Role, a.PatientID); err != nil {
		return nil, err
	}
	user, err := collections.NewUser(tx)
	if err != nil {
		return nil, err
	}
	setPassword(user, hash)
	user.SetEmail(email)
	user.SetVerified(!a.IsUnconfirmed)
	for column, value := range map[string]string{
		collections.UserFirstName: a.FirstName, collections.UserLastName: a.LastName, collections.UserRole: string(a.Role),
		collections.UserPatient: a.PatientID, collections.UserTimeZone: a.TimeZone, collections.UserNPI: a.NPI, collections.UserTaxonomy: a.Taxonomy,
		collections.UserCredential: a.Credential, collections.UserPhone: a.Phone,
	} {
		user.Set(column, value)
	}
	user.SetActive(true)
	user.SetMustChangePassword(a.MustChangePassword)
	collections.StampCreated(user.ProxyRecord(), now)
	if err := tx.Save(user); err != nil {
		return nil, fmt.Errorf("store user: %w", err)
	}
	return user, audit.Append(tx, userEntry(user, audit.UserCreate, by), now)
}

// checkPatientLink requires that only portal accounts are linked, and to an existing patient. Source: docs/decisions/users.md, "Patient portal
// link".
func checkPatientLink(tx core.App, role authz.Role, patientID string) error {
	if patientID == "" {
		return nil
	}
	if role != authz.Patient {
		return fault.Field("patient_id", "Only accounts with the role patient are linked to a patient.")
	}
	_, err := collections.FindPatient(tx, patientID)
	if collections.IsNotFound(err) {
		return fault.Missing() // Source: docs/decisions/conventions.md, "Reference to something that does not exist"
	}
	return err
}

// RegisterBody is an administrator's request to create an account.
type RegisterBody struct {
	Email              validate.String  `json:"email"`
	Password           validate.String  `json:"password"`
	FirstName          validate.String  `json:"first_name"`
	LastName           validate.String  `json:"last_name"`
	Role               validate.String  `json:"role"`
	PatientID          validate.String  `json:"patient_id"`
	TimeZone           validate.String  `json:"time_zone"`
	NPI                validate.String  `json:"npi"`
	Taxonomy           validate.String  `json:"taxonomy_code"`
	Credential         validate.String  `json:"credential"`
	Phone              validate.String  `json:"phone"`
	MustChangePassword validate.Boolean `json:"must_change_password"`
	// CurrentPassword is the caller's, for a new administrator without a fresh sign-in.
	CurrentPassword validate.String `json:"current_password"`
}

func (b RegisterBody) read(app core.App) (NewAccount, error) {
	checks := validate.NewChecks()
	a := NewAccount{
		Email:     checks.Text("email", b.Email, validate.Required(254).Identifier()),
		FirstName: checks.Text("first_name", b.FirstName, validate.Required(100)),
		LastName:  checks.Text("last_name", b.LastName, validate.Required(100)),
		Role:      authz.Role(checks.Text("role", b.Role, validate.Required(30).OneOf(roleNames()...))),
		Password:  checks.Secret("password", b.Password, 0),
		PatientID: checks.UUID("patient_id", b.PatientID, false),
		TimeZone:  checks.TimeZone("time_zone", b.TimeZone), NPI: readNPI(checks, b.NPI), Taxonomy: readTaxonomy(checks, b.Taxonomy), Phone: checks.Phone("phone", b.Phone),
		Credential: readCredential(checks, b.Credential), MustChangePassword: true,
	}
	if must := checks.Boolean("must_change_password", b.MustChangePassword, false); must != nil {
		a.MustChangePassword = *must
	}
	further := fault.Fields{}
	a.check(app, further)
	for _, field := range []string{"email", "password"} { // fields that were rejected already keep their first message
		if _, wrong := checks.Fields[field]; !wrong {
			for _, message := range further[field] {
				checks.Reject(field, message)
			}
		}
	}
	return a, checks.Err()
}

func roleNames() (names []string) {
	for _, role := range authz.Roles {
		names = append(names, string(role))
	}
	return names
}

// Register creates an account and queues its welcome mail with a one-time link to set the password, never the password itself. A new
// administrator requires reauthentication.
// Source: docs/decisions/authentication.md, "Registration".
func (e *Engine) Register(ctx context.Context, app core.App, caller Caller, body RegisterBody, from audit.Origin, now time.Time) (*collections.User, error) {
	ctx, done := withQueueTimeout(ctx)
	defer done()
	account, err := body.read(app)
	if err != nil {
		return nil, err
	}
	if account.Role == authz.Admin {
		if err := e.requireReauthentication(ctx, app, caller, PasswordProof{body.CurrentPassword}, from, now); err != nil {
			return nil, err
		}
	}
	hash, err := e.hash(ctx, app, account.Password)
	if err != nil {
		return nil, err
	}
	var user *collections.User
	err = app.RunInTransaction(func(tx core.App) error {
		if user, err = account.store(tx, hash, caller.Actor(from), now); err != nil {
			return err
		}
		link, err := addResetToken(tx, user, e.options.ResetURL, purposeWelcome, welcomeLife, now)
		if err != nil {
			return err
		}
		return notifications.QueueMail(tx, notifications.Welcome, user,
			map[string]string{"link": link, "email": user.Email(), "address": e.options.SignInURL}, now)
	})
	return user, err
}

// emailFormat is the format of a folded address. Only ASCII is allowed, because look-alike letters of other scripts would allow accounts that
// look the same.
var emailFormat = regexp.MustCompile(`^[a-z0-9!#$%&'*+/=?^_\x60{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_\x60{|}~-]+)*@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$`)

func validEmail(folded string) bool {
	return len(folded) <= 254 && strings.LastIndexByte(folded, '@') <= 64 && emailFormat.MatchString(folded)
}

const msgEmail = "Must be a valid e-mail address."

func readNPI(c *validate.Checks, f validate.String) string {
	text := c.Text("npi", f, validate.Optional(10))
	if text != "" && !validate.ValidNPI(text) {
		c.Reject("npi", "Must be ten digits with a valid check digit.")
	}
	return text
}

func readTaxonomy(c *validate.Checks, f validate.String) string {
	return c.Text("taxonomy_code", f, validate.Optional(10).Matching(validate.TaxonomyCode, "Must be a taxonomy code of ten characters, such as 207Q00000X."))
}

func readCredential(c *validate.Checks, f validate.String) string {
	return c.Text("credential", f, validate.Optional(40))
}

// Display units that a user may choose. Values are always stored and sent in the first unit.
var (
	WeightUnits      = []string{"kg", "lb"}
	TemperatureUnits = []string{"C", "F"}
)

// DisplayPatch changes the caller's display settings. Omitted fields stay as they are.
type DisplayPatch struct {
	WeightUnit      validate.String  `json:"weight_unit"`
	TemperatureUnit validate.String  `json:"temperature_unit"`
	SingleKeys      validate.Boolean `json:"single_keys"`
}

// columns returns the values of the fields that were sent, by column.
func (p DisplayPatch) columns() (map[string]string, error) {
	checks := validate.NewChecks()
	columns := map[string]string{}
	if p.WeightUnit.Sent() {
		columns[collections.UserWeightUnit] = checks.Text("weight_unit", p.WeightUnit, validate.Required(2).OneOf(WeightUnits...))
	}
	if p.TemperatureUnit.Sent() {
		columns[collections.UserTemperatureUnit] = checks.Text("temperature_unit", p.TemperatureUnit, validate.Required(1).OneOf(TemperatureUnits...))
	}
	if p.SingleKeys.Sent() {
		columns[collections.UserSingleKeys] = collections.KeysOn
		if on := checks.Boolean("single_keys", p.SingleKeys, true); on != nil && !*on {
			columns[collections.UserSingleKeys] = collections.KeysOff
		}
	}
	return columns, checks.Err()
}

// UpdateDisplay changes the caller's display settings.
func (e *Engine) UpdateDisplay(app core.App, caller Caller, patch DisplayPatch, from audit.Origin, now time.Time) (*collections.User, error) {
	columns, err := patch.columns()
	if err != nil {
		return nil, err
	}
	return e.changeExistingUser(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		return nil, applyColumns(tx, user, columns, caller.Actor(from), now)
	})
}

// DraftKey returns the key with which an app encrypts a user's drafts in browser storage that outlives a session. It is stable and returned to
// that user only. Source: docs/decisions/security.md, "Drafts and the session in a browser".
func (e *Engine) DraftKey(userID string) (string, error) {
	key, err := e.sealer.DeriveKey("drafts of a user")
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(phi.MAC(key, userID)), nil
}
