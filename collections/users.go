package collections

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Columns of a user that people fill.
const (
	UserFirstName = "first_name"
	UserLastName  = "last_name"
	UserRole      = "role"
	UserPhone     = "phone"
	UserNPI       = "npi"
	UserTaxonomy  = "taxonomy_code"
	// UserCredential is the professional credential, such as RN.
	UserCredential = "credential"
	UserTimeZone   = "time_zone"
	UserPatient    = "patient"
)

// User is a person who may sign in.
type User struct{ datedRecord }

// AsUser converts a record of the users collection.
func AsUser(record *core.Record) *User { return as[User](record) }

// NewUser returns an unsaved user with the next number.
func NewUser(app core.App) (*User, error) {
	return newRecord[User](app, Users, nil)
}

// FindUser finds a user by record id.
func FindUser(app core.App, id string) (*User, error) { return findUser(app, "id = {:value}", id) }

// FindUserByEmail finds a user by email address. Addresses are stored in lower case and compared exactly. The second condition is that of
// PocketBase's partial index.
func FindUserByEmail(app core.App, email string) (*User, error) {
	return findUser(app, "email = {:value} AND email != ''", email)
}

// UserFilter selects users; zero fields do not narrow.
type UserFilter struct {
	Role   string
	Active *bool
}

// UserName is the name of a user.
type UserName struct{ First, Last phi.Text }

// UserNames returns the names of users by record id; if a name cannot be opened, the last name is [UnreadableText].
func UserNames(app core.App, ids []string) (map[string]UserName, error) {
	return namesOfUsers(app, "id", ids)
}

// UserNamesByEmail is UserNames by email address.
func UserNamesByEmail(app core.App, addresses []string) (map[string]UserName, error) {
	return namesOfUsers(app, "email", addresses)
}

// namesOfUsers returns the names of users by the value of a column, with one query. It skips empty values, which several users may have.
func namesOfUsers(app core.App, column string, values []string) (map[string]UserName, error) {
	if len(values) == 0 {
		return nil, nil
	}
	var rows []struct {
		Key   string `db:"key"`
		ID    string `db:"id"`
		First string `db:"first_name"`
		Last  string `db:"last_name"`
	}
	err := app.DB().Select(column+" AS key", "id", "first_name", "last_name").From(Users).
		Where(dbx.NewExp(column+" IN (SELECT value FROM json_each({:values})) AND "+column+" != ''", dbx.Params{"values": jsonList(values)})).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("read names of users: %w", err)
	}
	names := make(map[string]UserName, len(rows))
	for _, row := range rows {
		first, last, broken := openNames(Users, row.ID, row.First, row.Last)
		if broken {
			last = UnreadableText
		}
		names[row.Key] = UserName{first, last}
	}
	return names, nil
}

// UsersByID returns users in no order, and skips ids without a user.
func UsersByID(app core.App, ids []string) (found []*User, err error) {
	err = app.RecordQuery(Users).AndWhere(idIn(ids)).All(&found)
	return found, wrap(err, "fetch users")
}

// UserList lists users in order of their numbers.
func UserList(app core.App, f UserFilter) ([]*User, error) {
	return listOf[User](app, Users, AllOf(Conditions{}.Equal("role", f.Role).Is("is_active", f.Active)), "id")
}

func findUser(app core.App, where, value string) (*User, error) {
	return find[User](app, Users, dbx.NewExp(where, dbx.Params{"value": value}))
}

func (u *User) Number() int64      { return Number(u.Id) }                          // public id
func (u *User) Role() string       { return u.GetString("role") }                   // one of the seven roles
func (u *User) Active() bool       { return u.GetBool("is_active") }                // the account may be used
func (u *User) FirstName() string  { return TextOf(u.ProxyRecord(), "first_name") } // opened
func (u *User) LastName() string   { return TextOf(u.ProxyRecord(), "last_name") }  // opened
func (u *User) Phone() string      { return TextOf(u.ProxyRecord(), "phone") }      // opened
func (u *User) PatientID() string  { return u.GetString("patient") }                // the patient of a portal account, or ""
func (u *User) Taxonomy() string   { return u.GetString(UserTaxonomy) }
func (u *User) Credential() string { return u.GetString(UserCredential) } // such as RN, or ""
func (u *User) NPI() string        { return u.GetString("npi") }          // National Provider Identifier, or ""

// TimeZonesOf returns the IANA names of users' time zones; "" is the practice's.
func TimeZonesOf(app core.App, ids []string) (map[string]string, error) {
	return readMap[string]("find time zones", app.DB().Select("id", "time_zone").From(Users).Where(AnyOf("id", ids)))
}

// PreferredLanguagesOf returns the preferred language (BCP 47, or "") of the patients of portal accounts: their own, or else the one of whom they
// have been caregivers longest. Staff are left out.
func PreferredLanguagesOf(app core.App, ids []string) (map[string]string, error) {
	return readMap[string]("find languages", app.DB().Select("users.id", "COALESCE(p.preferred_language, '')").From(Users).
		LeftJoin("patients p", dbx.NewExp(`p.id = COALESCE(NULLIF(users.patient, ''),
			(SELECT c.patient FROM caregivers c WHERE c.user = users.id AND c.ended_at = '' ORDER BY c.id LIMIT 1))`)).
		Where(dbx.HashExp{"users.role": "patient"}).AndWhere(AnyOf("users.id", ids)))
}

// AddressesOf returns the email addresses of users.
func AddressesOf(app core.App, ids []string) (map[string]string, error) {
	return readMap[string]("find addresses", app.DB().Select("id", "email").From(Users).Where(AnyOf("id", ids)))
}

func (u *User) TimeZone() string         { return u.GetString("time_zone") }          // IANA name; "" is the practice's
func (u *User) MustChangePassword() bool { return u.GetBool("must_change_password") } // another person set the password
func (u *User) PasswordHash() string     { return u.GetString("password:hash") }      // bcrypt
func (u *User) TwoFactorEnabled() bool   { return u.GetBool("two_factor_enabled") }   // sign-in requires a second factor

// TOTPSecret returns the opened secret, or "". Callers that compare codes check [Readable] first.
func (u *User) TOTPSecret() string  { return u.GetString("totp_secret") }
func (u *User) TOTPLastStep() int64 { return int64(u.GetInt("totp_last_step")) } // last accepted time step

// TOTPPending is an unconfirmed set-up: its opened secret, the hashes of its backup codes, the number of wrong codes so far and its expiry.
// The zero value means none.
type TOTPPending struct {
	Secret     string
	CodeHashes []string
	Failures   int
	Until      time.Time
}

// TOTPPending returns the set-up in progress.
func (u *User) TOTPPending() TOTPPending {
	return TOTPPending{
		Secret: u.GetString("totp_pending_secret"), CodeHashes: strings.Fields(u.GetString("totp_pending_codes")),
		Failures: u.GetInt("totp_pending_failures"), Until: instantOf(u, "totp_pending_until"),
	}
}

// SetTOTPPending replaces the set-up in progress.
func (u *User) SetTOTPPending(p TOTPPending) {
	replaceSealed(u.ProxyRecord(), "totp_pending_secret", p.Secret)
	replaceSealed(u.ProxyRecord(), "totp_pending_codes", strings.Join(p.CodeHashes, " "))
	u.Set("totp_pending_failures", p.Failures)
	u.Set("totp_pending_until", FormatInstant(p.Until))
}

// SetTwoFactor enables the second factor with a new secret, or disables it with "".
func (u *User) SetTwoFactor(secret string) {
	u.Set("two_factor_enabled", secret != "")
	replaceSealed(u.ProxyRecord(), "totp_secret", secret)
	u.Set("totp_last_step", 0)
}

func (u *User) SetActive(active bool)           { u.Set("is_active", active) }
func (u *User) SetMustChangePassword(must bool) { u.Set("must_change_password", must) }
func (u *User) SetTOTPLastStep(step int64)      { u.Set("totp_last_step", step) }
func (u *User) SetTimeZone(name string)         { u.Set(UserTimeZone, name) }
func (u *User) SetUpdatedAt(at time.Time)       { u.Set(ColumnUpdatedAt, FormatInstant(at)) }

func (u *User) LastLoginAt() time.Time { return instantOf(u, "last_login_at") } // zero before the first sign-in

// SetSignedIn records a completed sign-in. It writes only these columns, so it never reverts a concurrent change.
func SetSignedIn(app core.App, userID string, totpStep int64, now time.Time) error {
	return exec(app, "record sign-in", `UPDATE users SET last_login_at = {:now}, totp_last_step = MAX(totp_last_step, {:step}) WHERE id = {:id}`, dbx.Params{"now": FormatInstant(now), "step": totpStep, "id": userID})
}

// UserRelation is a user's relation to a patient or an escalation, as a condition on a user.
type UserRelation string

// Relations of users.
const (
	OnTeamOf UserRelation = `(id IN (SELECT user FROM care_team_members WHERE patient = {:to})
		OR id = (SELECT primary_provider FROM patients WHERE id = {:to}))`
	PrimaryProviderOf UserRelation = `id = (SELECT primary_provider FROM patients WHERE id = {:to})`
	AssigneeOf        UserRelation = `email = (SELECT assigned_to FROM escalations WHERE id = {:to}) AND email != ''`
	PortalOf          UserRelation = `patient = {:to}`
)

// ActiveUsers returns the active users with one of the roles, in order of their numbers; relation narrows them.
func ActiveUsers(app core.App, roles []string, relation UserRelation, to string) ([]string, error) {
	where := Conditions{AnyOf("role", roles)}
	if relation != "" {
		where = append(where, dbx.NewExp(string(relation), dbx.Params{"to": to}))
	}
	return activeUsers(app, where)
}

// ActiveUserIDs returns the user, if active.
func ActiveUserIDs(app core.App, id string) ([]string, error) {
	return activeUsers(app, Conditions{dbx.HashExp{"id": id}})
}

func activeUsers(app core.App, where Conditions) (ids []string, err error) {
	err = app.DB().Select("id").From(Users).Where(AllOf(where.And("is_active = TRUE"))).OrderBy("id").Column(&ids)
	return ids, wrap(err, "find active users")
}

// Columns of a user's display preferences.
const (
	UserWeightUnit      = "weight_unit"
	UserTemperatureUnit = "temperature_unit"
	UserSingleKeys      = "single_keys"
)

// Values of [UserSingleKeys].
const (
	KeysOn  = ""
	KeysOff = "off"
)

// DisplayUnits are the practice's units of weight ("kg", "lb") and temperature ("C", "F"); empty fields mean kg and C.
type DisplayUnits struct{ Weight, Temperature string }

// Display returns the user's display preferences: the units of weight and temperature, the practice's where the user has chosen none, and whether
// single-key shortcuts are on.
func (u *User) Display(practice DisplayUnits) (weight, temperature string, singleKeys bool) {
	weight = cmp.Or(u.GetString(UserWeightUnit), practice.Weight, "kg")
	temperature = cmp.Or(u.GetString(UserTemperatureUnit), practice.Temperature, "C")
	return weight, temperature, u.GetString(UserSingleKeys) != KeysOff
}

// StaffNames returns users' names by email address; unknown addresses are omitted.
func StaffNames(app core.App, emails []string) (map[string]phi.Text, error) {
	rows, err := queryAll[struct {
		ID    string `db:"id"`
		Email string `db:"email"`
		First string `db:"first_name"`
		Last  string `db:"last_name"`
	}](app, "read names of staff", `SELECT id, email, first_name, last_name FROM users
		WHERE email != '' AND email IN (SELECT value FROM json_each({:emails}))`, dbx.Params{"emails": jsonList(emails)})
	names := make(map[string]phi.Text, len(rows))
	for _, row := range rows {
		first, last, broken := openNames(Users, row.ID, row.First, row.Last)
		if broken {
			continue // the caller shows the address instead
		}
		names[row.Email] = first + " " + last
	}
	return names, err
}
