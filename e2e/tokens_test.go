package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/tools/security"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

// stolen is an account's data in the database that PocketBase's tokens are signed with.
type stolen struct{ ID, TokenKey, CollectionID, Options string }

func steal(t testing.TB, db dbx.Builder, collection, email string) stolen {
	t.Helper()
	var account stolen
	err := db.NewQuery(`SELECT a.id AS id, a.tokenKey AS token_key, c.id AS collection_id, c.options AS options
		FROM ` + collection + ` a, _collections c WHERE c.name = {:collection} AND a.email = {:email}`).
		Bind(dbx.Params{"email": email, "collection": collection}).One(&account)
	if err != nil {
		t.Fatal(err)
	}
	return account
}

// secret returns the secret of one kind of token, from the collection's options.
func (s stolen) secret(t testing.TB, kind string) string {
	t.Helper()
	_, rest, found := strings.Cut(s.Options, `"`+kind+`Token":`)
	_, rest, quoted := strings.Cut(rest, `"secret":"`)
	secret, _, ended := strings.Cut(rest, `"`)
	if !found || !quoted || !ended {
		t.Fatalf("no secret of %s tokens in the options", kind)
	}
	return secret
}

// tokenOf returns an access token issued some time ago under the practice's keys.
func (p *practice) tokenOf(t testing.TB, collection, email string, ago time.Duration) string {
	t.Helper()
	account := steal(t, p.database(t), collection, email)
	id, encoded, _ := strings.Cut(valueOf(p.Env, "VIGIL_ENCRYPTION_KEYS"), ":")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := phi.NewKeyRing(phi.Key{ID: id, Secret: [phi.KeySize]byte(raw)})
	if err != nil {
		t.Fatal(err)
	}
	issued := time.Now().Add(ago)
	token, err := auth.NewSigner(ring).Sign(
		auth.TokenClaims{Kind: auth.AccessToken, Collection: account.CollectionID, Holder: account.ID, SignedInAt: issued, IssuedAt: issued, ExpiresAt: issued.Add(15 * time.Minute)},
		auth.Account{TokenKey: account.TokenKey, Secret: account.secret(t, "auth")})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// A copy of data.db without the keys cannot be used to sign a token: none of PocketBase's five kinds, with its own secrets
// and claims, for users or superusers, with or without Vigil's claims.
func TestDatabaseCopyCannotSignTokens(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	patient := p.patient(t, nil)
	p.Superuser(t)
	genuine := p.Admin(t)
	copied, err := sqlite.Open(filepath.Join(p.Dir, "data.db"), "OFF") // as an attacker with the disk would read it
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close() //nolint:errcheck // it was only read
	header, err := jwt.NewParser().Parse(genuine, nil)
	if header == nil || header.Header["kid"] == "" {
		t.Fatalf("our own token names no key: %v", err)
	}
	tried := 0
	for collection, email := range map[string]string{"users": adminEmail, "_superusers": superuserEmail} {
		account := steal(t, copied, collection, email)
		for _, kind := range []string{"auth", "file", "verification", "passwordReset", "emailChange"} {
			for _, secret := range []string{account.TokenKey + account.secret(t, kind), account.TokenKey, account.secret(t, kind), account.secret(t, kind) + account.TokenKey} {
				for _, forged := range forgeries(t, account, email, kind, secret, header.Header["kid"]) {
					tried++
					p.wantRefusedEverywhere(t, forged, patient, account.ID)
				}
			}
		}
	}
	if tried != 2*5*4*4 {
		t.Errorf("%d tokens were tried", tried)
	}
	p.get(t, "/api/v1/patients/"+patient+"/", genuine).expect(t, 200)
	p.send(t, http.MethodGet, "/api/collections/users/records", p.Superuser(t), "").expect(t, 200)
}

// forgeries returns tokens of a kind signed with a secret: in PocketBase's form, with an issue time, with the key's name, and
// with a hash of the secret.
func forgeries(t testing.TB, account stolen, email, kind, secret string, kid any) (list []string) {
	t.Helper()
	claims := jwt.MapClaims{
		"id": account.ID, "type": kind, "collectionId": account.CollectionID, "refreshable": true, "email": email, "newEmail": "thief@vigil.test",
	}
	native, err := security.NewJWT(claims, secret, 87600*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	list = append(list, native)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("access token"))
	for _, key := range [][]byte{[]byte(secret), mac.Sum(nil), []byte(hex.EncodeToString(mac.Sum(nil)))} {
		claims["iat"], claims["auth_time"], claims["exp"] = time.Now().Unix(), time.Now().Unix(), time.Now().Add(10*time.Minute).Unix()
		token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
		token.Header["kid"] = kid
		signed, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, signed)
	}
	return list
}

// wantRefusedEverywhere tries a token at every kind of endpoint.
func (p *practice) wantRefusedEverywhere(t testing.TB, token, patient, holder string) {
	t.Helper()
	for _, path := range []string{"/api/v1/patients/" + patient + "/", "/api/v1/auth/profile/", "/api/v1/users/"} {
		p.get(t, path, token).expect(t, 401)
	}
	for _, door := range []struct{ method, path, body string }{
		{"GET", "/api/collections", ""},
		{"GET", "/api/collections/patients/records/" + patient, ""},
		{"GET", "/api/collections/users/records/" + holder, ""},
		{"GET", "/api/collections/_superusers/records", ""},
		{"GET", "/api/settings", ""},
		{"GET", "/api/logs", ""},
		{"GET", "/api/backups", ""},
		{"POST", "/api/files/token", ""},
		{"POST", "/api/collections/users/auth-refresh", ""},
		{"POST", "/api/collections/_superusers/auth-refresh", ""},
		{"POST", "/api/collections/users/confirm-password-reset", confirmation(token)},
		{"POST", "/api/collections/_superusers/confirm-password-reset", confirmation(token)},
		{"POST", "/api/collections/users/confirm-email-change", confirmation(token)},
		{"POST", "/api/collections/_superusers/confirm-email-change", confirmation(token)},
		{"POST", "/api/collections/_superusers/confirm-verification", confirmation(token)},
		{"POST", "/api/collections/_superusers/auth-with-otp", `{"otpId":"x","password":"123456","mfaId":"` + token + `"}`},
	} {
		a := p.send(t, door.method, door.path, token, door.body)
		if a.status < 400 || a.status > 499 {
			t.Errorf("%s %s answers %d to a forged token: %s", door.method, door.path, a.status, a.body)
		}
	}
	if a := p.send(t, http.MethodGet, "/api/backups/backup.zip?token="+token, "", ""); a.status < 400 || a.status > 499 {
		t.Errorf("a backup answers %d to a forged token", a.status)
	}
}

func confirmation(token string) string {
	return `{"token":"` + token + `","password":"Thief-Horse-42!","passwordConfirm":"Thief-Horse-42!"}`
}
