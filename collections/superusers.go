package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

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
