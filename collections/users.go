package collections

import (
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// The columns of a user that people fill.
const (
	UserFirstName = "first_name"
	UserLastName  = "last_name"
	UserRole      = "role"
	UserPhone     = "phone"
	UserNPI       = "npi"
	UserTaxonomy  = "taxonomy_code"
	UserTimeZone  = "time_zone"
	UserPatient   = "patient"
)

// User is a person who may sign in.
type User struct{ dated }

// AsUser reads a record of the users collection as a User.
func AsUser(record *core.Record) *User { return as[User](record) }

// NewUser returns an unsaved user with the next number.
func NewUser(app core.App) (*User, error) {
	return fresh[User](app, Users, nil)
}

// FindUser finds a user by record id.
func FindUser(app core.App, id string) (*User, error) { return findUser(app, "id = {:value}", id) }

// FindUserByEmail finds a user by address; addresses are stored in lower case and compared exactly.
// The second condition is that of PocketBase's index, which is not used without it.
func FindUserByEmail(app core.App, email string) (*User, error) {
	return findUser(app, "email = {:value} AND email != ''", email)
}

// UserFilter chooses users; zero fields choose all.
type UserFilter struct {
	Role   string
	Active *bool
}

// UserName is what a user is called.
type UserName struct{ First, Last phi.Text }

// UserNames are the names of users by record id; [UnreadableText] is the last name of those whose name cannot be opened.
func UserNames(app core.App, ids []string) (map[string]UserName, error) {
	return namesOfUsers(app, "id", ids)
}

// UserNamesByEmail are the same by address.
func UserNamesByEmail(app core.App, addresses []string) (map[string]UserName, error) {
	return namesOfUsers(app, "email", addresses)
}

// namesOfUsers are the names of the users that have one of the values in a column, by that value, with one query. The empty address, which many
// may have, is nobody's.
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

// UsersByID fetches users, in no order; ids without a user are skipped.
func UsersByID(app core.App, ids []string) (found []*User, err error) {
	err = app.RecordQuery(Users).AndWhere(among(ids)).All(&found)
	return found, wrap(err, "fetch users")
}

// UserList lists users in the order of their numbers.
func UserList(app core.App, f UserFilter) ([]*User, error) {
	return listOf[User](app, Users, Every(Conditions{}.Equal("role", f.Role).Is("is_active", f.Active)), "id")
}

func findUser(app core.App, where, value string) (*User, error) {
	return find[User](app, Users, dbx.NewExp(where, dbx.Params{"value": value}))
}

func (u *User) Number() int64     { return Number(u.Id) }                          // the public id
func (u *User) Role() string      { return u.GetString("role") }                   // one of the seven roles
func (u *User) Active() bool      { return u.GetBool("is_active") }                // the account may be used
func (u *User) FirstName() string { return TextOf(u.ProxyRecord(), "first_name") } // opened
func (u *User) LastName() string  { return TextOf(u.ProxyRecord(), "last_name") }  // opened
func (u *User) Phone() string     { return TextOf(u.ProxyRecord(), "phone") }      // opened
func (u *User) PatientID() string { return u.GetString("patient") }                // the patient whose portal account this is, else ""
func (u *User) Taxonomy() string  { return u.GetString(UserTaxonomy) }
func (u *User) NPI() string       { return u.GetString("npi") } // the National Provider Identifier, else ""

// TimeZonesOf are the IANA names of the given users' zones; "" for the practice's.
func TimeZonesOf(app core.App, ids []string) (map[string]string, error) {
	return readMap[string]("find time zones", app.DB().Select("id", "time_zone").From(Users).Where(AnyOf("id", ids)))
}

// AddressesOf are the e-mail addresses of users.
func AddressesOf(app core.App, ids []string) (map[string]string, error) {
	return readMap[string]("find addresses", app.DB().Select("id", "email").From(Users).Where(AnyOf("id", ids)))
}

func (u *User) TimeZone() string         { return u.GetString("time_zone") }          // an IANA name; "" for the practice's
func (u *User) MustChangePassword() bool { return u.GetBool("must_change_password") } // the password was given by somebody else
func (u *User) PasswordHash() string     { return u.GetString("password:hash") }      // what is stored of the password
func (u *User) TwoFactorEnabled() bool   { return u.GetBool("two_factor_enabled") }   // signing in takes a second factor

// TOTPSecret is opened; "" when there is none. Whoever compares codes asks [Readable] first.
func (u *User) TOTPSecret() string  { return u.GetString("totp_secret") }
func (u *User) TOTPLastStep() int64 { return int64(u.GetInt("totp_last_step")) } // the last time step accepted

// TOTPPending is a set-up that is not confirmed yet: its secret, opened, the hashes of its backup codes, the wrong codes given to it so far
// and when it lapses. The zero value is none.
type TOTPPending struct {
	Secret     string
	CodeHashes []string
	Failures   int
	Until      time.Time
}

// TOTPPending is the set-up under way.
func (u *User) TOTPPending() TOTPPending {
	return TOTPPending{
		Secret: u.GetString("totp_pending_secret"), CodeHashes: strings.Fields(u.GetString("totp_pending_codes")),
		Failures: u.GetInt("totp_pending_failures"), Until: instantOf(u, "totp_pending_until"),
	}
}

// SetTOTPPending replaces the set-up under way.
func (u *User) SetTOTPPending(p TOTPPending) {
	replaceSealed(u.ProxyRecord(), "totp_pending_secret", p.Secret)
	replaceSealed(u.ProxyRecord(), "totp_pending_codes", strings.Join(p.CodeHashes, " "))
	u.Set("totp_pending_failures", p.Failures)
	u.Set("totp_pending_until", Instant(p.Until))
}

// SetTwoFactor turns the second factor on with a secret that no code was used of, or off with "".
func (u *User) SetTwoFactor(secret string) {
	u.Set("two_factor_enabled", secret != "")
	replaceSealed(u.ProxyRecord(), "totp_secret", secret)
	u.Set("totp_last_step", 0)
}

func (u *User) SetActive(active bool)           { u.Set("is_active", active) }
func (u *User) SetMustChangePassword(must bool) { u.Set("must_change_password", must) }
func (u *User) SetTOTPLastStep(step int64)      { u.Set("totp_last_step", step) }
func (u *User) SetTimeZone(name string)         { u.Set(UserTimeZone, name) }
func (u *User) SetUpdatedAt(at time.Time)       { u.Set(ColumnUpdatedAt, Instant(at)) }

func (u *User) LastLoginAt() time.Time { return instantOf(u, "last_login_at") } // zero before the first sign-in

// SetSignedIn notes a completed sign-in. It writes these columns only, so that it never undoes another change.
func SetSignedIn(app core.App, userID string, totpStep int64, now time.Time) error {
	return exec(app, "note sign-in", `UPDATE users SET last_login_at = {:now}, totp_last_step = MAX(totp_last_step, {:step}) WHERE id = {:id}`, dbx.Params{"now": Instant(now), "step": totpStep, "id": userID})
}

// Tie is what somebody has to do with a patient or an escalation.
type Tie string

// The ties, as conditions on a user.
const (
	OnTeamOf Tie = `(id IN (SELECT user FROM care_team_members WHERE patient = {:to})
		OR id = (SELECT primary_provider FROM patients WHERE id = {:to}))`
	PrimaryProviderOf Tie = `id = (SELECT primary_provider FROM patients WHERE id = {:to})`
	AssigneeOf        Tie = `email = (SELECT assigned_to FROM escalations WHERE id = {:to}) AND email != ''`
	PortalOf          Tie = `patient = {:to}`
)

// ActiveUsers are those with one of the roles whose account may be used, in the order of their numbers; a tie narrows them.
func ActiveUsers(app core.App, roles []string, tie Tie, to string) ([]string, error) {
	where := Conditions{AnyOf("role", roles)}
	if tie != "" {
		where = append(where, dbx.NewExp(string(tie), dbx.Params{"to": to}))
	}
	return activeUsers(app, where)
}

// ActiveUser is the user, if the account may be used.
func ActiveUser(app core.App, id string) ([]string, error) {
	return activeUsers(app, Conditions{dbx.HashExp{"id": id}})
}

func activeUsers(app core.App, where Conditions) (ids []string, err error) {
	err = app.DB().Select("id").From(Users).Where(Every(where.And("is_active = TRUE"))).OrderBy("id").Column(&ids)
	return ids, wrap(err, "find people")
}

// Superuser is an operator of PocketBase's dashboard, who is no user.
type Superuser struct{ core.BaseRecordProxy }

// AsSuperuser reads a record of the superusers' collection as a Superuser.
func AsSuperuser(record *core.Record) *Superuser { return as[Superuser](record) }

// FindSuperuser finds a superuser by record id.
func FindSuperuser(app core.App, id string) (*Superuser, error) {
	return find[Superuser](app, core.CollectionNameSuperusers, dbx.HashExp{"id": id})
}

// FindSuperuserByEmail finds a superuser by folded address; PocketBase stores addresses as they were typed.
func FindSuperuserByEmail(app core.App, folded string) (*Superuser, error) {
	return find[Superuser](app, core.CollectionNameSuperusers, dbx.NewExp("LOWER(email) = {:email}", dbx.Params{"email": folded}))
}

func (s *Superuser) FirstName() string      { return s.GetString("first_name") }
func (s *Superuser) LastName() string       { return s.GetString("last_name") }
func (s *Superuser) PasswordHash() string   { return s.GetString("password:hash") }      // the bcrypt hash of the password
func (s *Superuser) TwoFactorEnabled() bool { return s.GetBool("two_factor_enabled") }   // signing in takes a code
func (s *Superuser) TOTPSecret() string     { return s.GetString("totp_secret") }        // the base32 secret of the second factor
func (s *Superuser) TOTPLastStep() int64    { return int64(s.GetInt("totp_last_step")) } // the last time step whose code was accepted

// SetTwoFactor turns the second factor on with a secret that no code was used of, or off with "".
func (s *Superuser) SetTwoFactor(secret string) {
	s.Set("two_factor_enabled", secret != "")
	replaceSealed(s.ProxyRecord(), "totp_secret", secret)
	s.Set("totp_last_step", 0)
}

// SetSuperuserStep notes the time step of an accepted code. It writes this column only, so that it never undoes another change.
func SetSuperuserStep(app core.App, id string, step int64) error {
	return exec(app, "note second factor", `UPDATE _superusers SET totp_last_step = MAX(totp_last_step, {:step}) WHERE id = {:id}`, dbx.Params{"step": step, "id": id})
}

// The columns of how things are shown to somebody.
const (
	UserWeightUnit      = "weight_unit"
	UserTemperatureUnit = "temperature_unit"
	UserSingleKeys      = "single_keys"
)

// What stands in [UserSingleKeys].
const (
	KeysOn  = ""
	KeysOff = "off"
)

// Display is how things are shown to the user: the units of weight and temperature, and whether single keys act.
func (u *User) Display() (weight, temperature string, singleKeys bool) {
	weight, temperature = u.GetString(UserWeightUnit), u.GetString(UserTemperatureUnit)
	if weight == "" {
		weight = "kg"
	}
	if temperature == "" {
		temperature = "C"
	}
	return weight, temperature, u.GetString(UserSingleKeys) != KeysOff
}

// StaffNames are what people are called, by e-mail address; addresses that nobody has are left out.
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
			continue // the address is shown instead
		}
		names[row.Email] = first + " " + last
	}
	return names, err
}
