package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Superuser is an operator of PocketBase's dashboard. It is not a user.
type Superuser struct{ core.BaseRecordProxy }

// AsSuperuser converts a record of the superusers collection.
func AsSuperuser(record *core.Record) *Superuser { return as[Superuser](record) }

// FindSuperuser finds a superuser by record id.
func FindSuperuser(app core.App, id string) (*Superuser, error) {
	return find[Superuser](app, core.CollectionNameSuperusers, dbx.HashExp{"id": id})
}

// FindSuperuserByEmail finds a superuser by lower-case email address; PocketBase stores addresses as typed.
func FindSuperuserByEmail(app core.App, folded string) (*Superuser, error) {
	return find[Superuser](app, core.CollectionNameSuperusers, dbx.NewExp("LOWER(email) = {:email}", dbx.Params{"email": folded}))
}

func (s *Superuser) FirstName() string      { return s.GetString("first_name") }
func (s *Superuser) LastName() string       { return s.GetString("last_name") }
func (s *Superuser) PasswordHash() string   { return s.GetString("password:hash") }      // bcrypt
func (s *Superuser) TwoFactorEnabled() bool { return s.GetBool("two_factor_enabled") }   // sign-in requires a code
func (s *Superuser) TOTPSecret() string     { return s.GetString("totp_secret") }        // base32
func (s *Superuser) TOTPLastStep() int64    { return int64(s.GetInt("totp_last_step")) } // last accepted time step

// SetTwoFactor enables the second factor with a new secret, or disables it with "".
func (s *Superuser) SetTwoFactor(secret string) {
	s.Set("two_factor_enabled", secret != "")
	replaceSealed(s.ProxyRecord(), "totp_secret", secret)
	s.Set("totp_last_step", 0)
}

// SetSuperuserStep records the time step of an accepted code. It writes only this column, so it never reverts a concurrent change.
func SetSuperuserStep(app core.App, id string, step int64) error {
	return exec(app, "record second factor", `UPDATE _superusers SET totp_last_step = MAX(totp_last_step, {:step}) WHERE id = {:id}`, dbx.Params{"step": step, "id": id})
}
