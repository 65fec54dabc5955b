package vigiltest

import (
	"fmt"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/tokens"
)

// Password is what every user of [User] signs in with, unless said otherwise.
const Password = "Correct-Horse-42"

// UserOption changes a user before it is stored.
type UserOption func(*core.Record)

// Email gives the user another address than <role><number>@vigil.test.
func Email(address string) UserOption { return func(r *core.Record) { r.SetEmail(address) } }

// Inactive makes an account that cannot be used.
func Inactive() UserOption { return func(r *core.Record) { r.Set("is_active", false) } }

// PortalOf links the account to a patient.
func PortalOf(patientID string) UserOption {
	return func(r *core.Record) { r.Set("patient", patientID) }
}

// TwoFactor turns on the second factor with the given base32 secret.
func TwoFactor(secret string) UserOption {
	return func(r *core.Record) {
		r.Set("two_factor_enabled", true)
		r.Set("totp_secret", secret)
	}
}

// With sets any field.
func With(field string, value any) UserOption { return func(r *core.Record) { r.Set(field, value) } }

// User stores an active user of a role, made at [Clock].
func User(t testing.TB, app core.App, role access.Role, options ...UserOption) *collections.User {
	t.Helper()
	user, err := collections.NewUser(app)
	if err != nil {
		t.Fatal(err)
	}
	user.SetEmail(fmt.Sprintf("%s%d@vigil.test", role, user.Number()))
	user.SetPassword(Password)
	user.Set("first_name", "Test")
	user.Set("last_name", "Person")
	user.Set("role", string(role))
	user.Set("is_active", true)
	user.Set("created_at", collections.Instant(Clock))
	user.Set("updated_at", collections.Instant(Clock))
	for _, option := range options {
		option(user.ProxyRecord())
	}
	if err := app.Save(user); err != nil {
		t.Fatalf("store a %s: %v", role, err)
	}
	return user
}

// Token is an access token of the user, issued now and good for fifteen minutes, under the keys of [Sealer].
func Token(t testing.TB, user *collections.User, now time.Time) string {
	t.Helper()
	users := user.Collection()
	const life = 15 * time.Minute
	token, err := tokens.NewSigner(Sealer()).Sign(
		tokens.Token{Kind: tokens.Access, Collection: users.Id, Holder: user.Id, IssuedAt: now, ExpiresAt: now.Add(life)},
		tokens.Account{TokenKey: user.TokenKey(), Secret: users.AuthToken.Secret, Life: life})
	if err != nil {
		t.Fatal(err)
	}
	return token
}
