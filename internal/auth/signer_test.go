package auth_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/phi"
)

var (
	now     = time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)
	account = auth.Account{TokenKey: "token key", Secret: "secret", Life: 15 * time.Minute}
)

func tokenKey(id string, first byte) phi.Key {
	return phi.Key{ID: id, Secret: [phi.KeySize]byte{first}}
}

func ring(t testing.TB, keys ...phi.Key) *phi.KeyRing {
	t.Helper()
	r, err := phi.NewKeyRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func access() auth.TokenClaims {
	return auth.TokenClaims{
		Kind: auth.AccessToken, Collection: "users", Holder: "1", Family: "f", SignedInAt: now.Add(-time.Hour), IssuedAt: now, ExpiresAt: now.Add(15 * time.Minute),
	}
}

func sign(t testing.TB, r *phi.KeyRing, token auth.TokenClaims, account auth.Account) string {
	t.Helper()
	signed, err := auth.NewSigner(r).Sign(token, account)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func known(auth.TokenClaims) (auth.Account, error) { return account, nil }

func TestCheckReadsWhatSignWrote(t *testing.T) {
	r := ring(t, tokenKey("a", 1))
	got, err := auth.NewSigner(r).Check(sign(t, r, access(), account), auth.AccessToken, now, known)
	if err != nil || got != access() {
		t.Errorf("read %+v, %v", got, err)
	}
}

// TestTokensFollowTheRing checks that a token remains valid through a rotation and ends when its key leaves the ring.
func TestTokensFollowTheRing(t *testing.T) {
	old, fresh := tokenKey("a", 1), tokenKey("b", 2)
	signed := sign(t, ring(t, old), access(), account)
	for name, test := range map[string]struct {
		ring *phi.KeyRing
		want error
	}{
		"the same":                {ring(t, old), nil},
		"a newer key first":       {ring(t, fresh, old), nil},
		"the key gone":            {ring(t, fresh), auth.ErrInvalid},
		"another key of its name": {ring(t, tokenKey("a", 9)), auth.ErrInvalid},
	} {
		if _, err := auth.NewSigner(test.ring).Check(signed, auth.AccessToken, now, known); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestForgedTokens checks that neither the database's secrets nor parts of the key sign a token.
func TestForgedTokens(t *testing.T) {
	r := ring(t, tokenKey("a", 1))
	s := auth.NewSigner(r)
	forge := func(key []byte, header, change map[string]any) string {
		c := jwt.MapClaims{
			"id": "1", "type": "auth", "collectionId": "users", "refreshable": true, "iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(),
		}
		for name, value := range change {
			if c[name] = value; value == nil {
				delete(c, name)
			}
		}
		token := jwt.NewWithClaims(jwt.SigningMethodHS256, c)
		for name, value := range header {
			token.Header[name] = value
		}
		signed, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	native := []byte(account.TokenKey + account.Secret)
	kid := map[string]any{"kid": "a"}
	for name, token := range map[string]string{
		"PocketBase's own":            forge(native, nil, nil),
		"PocketBase's own, naming":    forge(native, kid, nil),
		"PocketBase's own, ten years": forge(native, kid, map[string]any{"exp": now.AddDate(10, 0, 0).Unix()}),
		"an empty key":                forge([]byte{}, kid, nil),
		"another key of the ring":     forge(native, map[string]any{"kid": "b"}, nil),
		"kid no text":                 forge(native, map[string]any{"kid": 7}, nil),
		"cut":                         sign(t, r, access(), account)[:80],
		"none":                        "",
	} {
		if _, err := s.Check(token, auth.AccessToken, now, known); !errors.Is(err, auth.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGreatestAge checks that even a validly signed token is refused if it lives longer than its kind or has another purpose.
func TestGreatestAge(t *testing.T) {
	r := ring(t, tokenKey("a", 1))
	for name, test := range map[string]struct {
		change func(*auth.TokenClaims)
		at     time.Time
		want   error
	}{
		"good":               {func(*auth.TokenClaims) {}, now, nil},
		"its last moment":    {func(*auth.TokenClaims) {}, now.Add(15*time.Minute - 1), nil},
		"over":               {func(*auth.TokenClaims) {}, now.Add(15 * time.Minute), auth.ErrExpired},
		"a second too long":  {func(t *auth.TokenClaims) { t.ExpiresAt = t.ExpiresAt.Add(time.Second) }, now, auth.ErrInvalid},
		"ten years":          {func(t *auth.TokenClaims) { t.ExpiresAt = t.ExpiresAt.AddDate(10, 0, 0) }, now, auth.ErrInvalid},
		"issued a bit ahead": {func(*auth.TokenClaims) {}, now.Add(-time.Minute), nil},
		"issued tomorrow": {func(t *auth.TokenClaims) {
			t.IssuedAt, t.ExpiresAt = now.Add(24*time.Hour), now.Add(24*time.Hour+time.Minute)
		}, now, auth.ErrInvalid},
		"half a sign-in": {func(t *auth.TokenClaims) { t.Kind = auth.SecondFactorToken }, now, auth.ErrInvalid},
	} {
		token := access()
		test.change(&token)
		if _, err := auth.NewSigner(r).Check(sign(t, r, token, account), auth.AccessToken, test.at, known); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTokensFollowTheAccount checks that the account's secrets and identity are part of the key.
func TestTokensFollowTheAccount(t *testing.T) {
	r := ring(t, tokenKey("a", 1))
	signed := sign(t, r, access(), account)
	gone := errors.New("gone")
	for name, test := range map[string]struct {
		find func(auth.TokenClaims) (auth.Account, error)
		want error
	}{
		"another password": {func(auth.TokenClaims) (auth.Account, error) {
			return auth.Account{TokenKey: "x", Secret: "secret", Life: time.Hour}, nil
		}, auth.ErrInvalid},
		"secrets shifted": {func(auth.TokenClaims) (auth.Account, error) {
			return auth.Account{TokenKey: "token keysec", Secret: "ret", Life: time.Hour}, nil
		}, auth.ErrInvalid},
		"no token key": {func(auth.TokenClaims) (auth.Account, error) {
			return auth.Account{Secret: "token keysecret", Life: time.Hour}, nil
		}, auth.ErrInvalid},
		"gone": {func(auth.TokenClaims) (auth.Account, error) { return auth.Account{}, gone }, gone},
	} {
		if _, err := auth.NewSigner(r).Check(signed, auth.AccessToken, now, test.find); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	parts := strings.Split(signed, ".")
	other := base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf(
		`{"id":"2","type":"auth","collectionId":"users","refreshable":true,"iat":%d,"exp":%d}`, now.Unix(), now.Add(time.Minute).Unix())))
	if _, err := auth.NewSigner(r).Check(parts[0]+"."+other+"."+parts[2], auth.AccessToken, now, known); !errors.Is(err, auth.ErrInvalid) {
		t.Errorf("somebody else's: %v", err)
	}
}

// TestVerifiedTokensAreRechecked checks that expiry and account of a cached token are checked on every use.
func TestVerifiedTokensAreRechecked(t *testing.T) {
	s := auth.NewSigner(ring(t, tokenKey("a", 1)))
	signed, err := s.Sign(access(), account)
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	for name, test := range map[string]struct {
		at      time.Time
		kind    string
		account auth.Account
		failure error
		want    error
	}{
		"good":             {now, auth.AccessToken, account, nil, nil},
		"over":             {now.Add(15 * time.Minute), auth.AccessToken, account, nil, auth.ErrExpired},
		"clock set back":   {now.Add(-time.Hour), auth.AccessToken, account, nil, auth.ErrInvalid},
		"another password": {now, auth.AccessToken, auth.Account{TokenKey: "x", Secret: "secret", Life: time.Hour}, nil, auth.ErrInvalid},
		"another secret":   {now, auth.AccessToken, auth.Account{TokenKey: "token key", Secret: "x", Life: time.Hour}, nil, auth.ErrInvalid},
		"a shorter life":   {now, auth.AccessToken, auth.Account{TokenKey: "token key", Secret: "secret", Life: time.Minute}, nil, auth.ErrInvalid},
		"another kind":     {now, auth.SecondFactorToken, account, nil, auth.ErrInvalid},
		"gone":             {now, auth.AccessToken, account, gone, gone},
	} {
		if _, err := s.Check(signed, auth.AccessToken, now, known); err != nil {
			t.Fatal(err)
		}
		_, err := s.Check(signed, test.kind, test.at, func(auth.TokenClaims) (auth.Account, error) { return test.account, test.failure })
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	s := auth.NewSigner(ring(b, tokenKey("a", 1)))
	signed, err := s.Sign(access(), account)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Check(signed, auth.AccessToken, now, known); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAccountsDoNotPrint(t *testing.T) {
	if got := fmt.Sprintf("%v %+v %#v %s", account, account, account, account); strings.Contains(got, "secret") {
		t.Error(got)
	}
}

func FuzzCheck(f *testing.F) {
	r := ring(f, tokenKey("a", 1))
	f.Add(sign(f, r, access(), account))
	f.Add("a.b.c")
	s := auth.NewSigner(r)
	good := sign(f, r, access(), account)
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := s.Check(token, auth.AccessToken, now, known); err == nil && token != good {
			t.Errorf("%q passes", token)
		}
	})
}
