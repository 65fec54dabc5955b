package collections

import (
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Passkey is the public part of a user's WebAuthn credential. The name is encrypted.
type Passkey struct{ datedRecord }

// NewPasskey is the result of a registration.
type NewPasskey struct {
	UserID, Name            string
	CredentialID, PublicKey string // base64url
	Transports              []string
	AAGUID                  string
	SignCount               uint32
	UserVerified            bool
	BackupEligible          bool
	BackedUp                bool
}

// CreatePasskey stores a passkey with the next number.
func CreatePasskey(tx core.App, p NewPasskey, now time.Time) (*Passkey, error) {
	record, err := store(tx, "store passkey", Passkeys, map[string]any{
		"user": p.UserID, "name": p.Name, "credential_id": p.CredentialID, "public_key": p.PublicKey,
		"transports": strings.Join(p.Transports, " "), "aaguid": p.AAGUID, "sign_count": p.SignCount, "user_verified": p.UserVerified,
		"backup_eligible": p.BackupEligible, "backed_up": p.BackedUp, "created_at": FormatInstant(now),
	})
	if err != nil {
		return nil, err
	}
	return as[Passkey](record), nil
}

// FindPasskey finds a passkey by its credential id in base64url.
func FindPasskey(app core.App, credentialID string) (*Passkey, error) {
	return find[Passkey](app, Passkeys, dbx.HashExp{"credential_id": credentialID})
}

// FindOwnPasskey finds a passkey by record id, if it belongs to the user.
func FindOwnPasskey(app core.App, userID, id string) (*Passkey, error) {
	return find[Passkey](app, Passkeys, dbx.HashExp{"id": id, "user": userID})
}

// PasskeysOf lists a user's passkeys in order of registration.
func PasskeysOf(app core.App, userID string) ([]*Passkey, error) {
	return listOf[Passkey](app, Passkeys, dbx.HashExp{"user": userID}, "id")
}

// UsersWithPasskeys returns which of the users have a passkey, by record id.
func UsersWithPasskeys(app core.App, userIDs ...string) (map[string]bool, error) {
	var ids []string
	err := app.DB().Select("user").Distinct(true).From(Passkeys).Where(AnyOf("user", userIDs)).Column(&ids)
	return setOf(ids), wrap(err, "find users with passkeys")
}

// RenamePasskey renames a passkey.
func RenamePasskey(tx core.App, p *Passkey, name string) error {
	p.Set("name", name)
	return wrap(tx.Save(p), "rename passkey")
}

// MarkPasskeyUsed records a completed use. It writes only these columns.
func MarkPasskeyUsed(tx core.App, id string, signCount uint32, backedUp bool, now time.Time) error {
	return update(tx, "note use of passkey", Passkeys,
		dbx.Params{"sign_count": signCount, "backed_up": backedUp, "last_used_at": FormatInstant(now)}, dbx.HashExp{"id": id})
}

// RemovePasskey deletes a passkey.
func RemovePasskey(tx core.App, p *Passkey) error {
	return wrap(tx.Delete(p), "remove passkey")
}

func (p *Passkey) Number() int64        { return Number(p.Id) }                              // public id
func (p *Passkey) UserID() string       { return p.GetString("user") }                       // owner
func (p *Passkey) Name() string         { return p.GetString("name") }                       // opened
func (p *Passkey) CredentialID() string { return p.GetString("credential_id") }              // in base64url, from the authenticator
func (p *Passkey) PublicKey() string    { return p.GetString("public_key") }                 // a COSE key in base64url
func (p *Passkey) Transports() []string { return strings.Fields(p.GetString("transports")) } // the browser's connections to the authenticator

// SignCount is the authenticator's last count.
func (p *Passkey) SignCount() uint32 {
	return uint32(p.GetInt("sign_count")) //nolint:gosec // stored from a uint32
}

func (p *Passkey) UserVerified() bool   { return p.GetBool("user_verified") }   // the authenticator verified the user at registration
func (p *Passkey) BackupEligible() bool { return p.GetBool("backup_eligible") } // the authenticator may copy it to other devices
func (p *Passkey) BackedUp() bool       { return p.GetBool("backed_up") }       // it was copied at the last use

func (p *Passkey) LastUsedAt() time.Time { return instantOf(p, "last_used_at") }
