package tokens_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/tokens"
)

var (
	now     = time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)
	account = tokens.Account{TokenKey: "token key", Secret: "secret", Life: 15 * time.Minute}
)

func key(id string, first byte) phi.Key { return phi.Key{ID: id, Secret: [phi.KeySize]byte{first}} }

func ring(t testing.TB, keys ...phi.Key) *phi.KeyRing {
	t.Helper()
	r, err := phi.NewKeyRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func access() tokens.Token {
	return tokens.Token{
		Kind: tokens.Access, Collection: "users", Holder: "1", Family: "f", SignedInAt: now.Add(-time.Hour), IssuedAt: now, ExpiresAt: now.Add(15 * time.Minute),
	}
}

func sign(t testing.TB, r *phi.KeyRing, token tokens.Token, account tokens.Account) string {
	t.Helper()
	signed, err := tokens.NewSigner(r).Sign(token, account)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func known(tokens.Token) (tokens.Account, error) { return account, nil }

func TestCheckReadsWhatSignWrote(t *testing.T) {
	r := ring(t, key("a", 1))
	got, err := tokens.NewSigner(r).Check(sign(t, r, access(), account), tokens.Access, now, known)
	if err != nil || got != access() {
		t.Errorf("read %+v, %v", got, err)
	}
}

// A token lives as long as the key of the ring that signed it: through a rotation, and not past it.
func TestTokensFollowTheRing(t *testing.T) {
	old, fresh := key("a", 1), key("b", 2)
	signed := sign(t, ring(t, old), access(), account)
	for name, test := range map[string]struct {
		ring *phi.KeyRing
		want error
	}{
		"the same":                {ring(t, old), nil},
		"a newer key first":       {ring(t, fresh, old), nil},
		"the key gone":            {ring(t, fresh), tokens.ErrInvalid},
		"another key of its name": {ring(t, key("a", 9)), tokens.ErrInvalid},
	} {
		if _, err := tokens.NewSigner(test.ring).Check(signed, tokens.Access, now, known); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What signs is neither in the database nor one of two parts that are there.
func TestForgedTokens(t *testing.T) {
	r := ring(t, key("a", 1))
	s := tokens.NewSigner(r)
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
		if _, err := s.Check(token, tokens.Access, now, known); !errors.Is(err, tokens.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whoever could sign still could not make a token that lives longer than its kind, or a token for another purpose.
func TestGreatestAge(t *testing.T) {
	r := ring(t, key("a", 1))
	for name, test := range map[string]struct {
		change func(*tokens.Token)
		at     time.Time
		want   error
	}{
		"good":               {func(*tokens.Token) {}, now, nil},
		"its last moment":    {func(*tokens.Token) {}, now.Add(15*time.Minute - 1), nil},
		"over":               {func(*tokens.Token) {}, now.Add(15 * time.Minute), tokens.ErrExpired},
		"a second too long":  {func(t *tokens.Token) { t.ExpiresAt = t.ExpiresAt.Add(time.Second) }, now, tokens.ErrInvalid},
		"ten years":          {func(t *tokens.Token) { t.ExpiresAt = t.ExpiresAt.AddDate(10, 0, 0) }, now, tokens.ErrInvalid},
		"issued a bit ahead": {func(*tokens.Token) {}, now.Add(-time.Minute), nil},
		"issued tomorrow": {func(t *tokens.Token) {
			t.IssuedAt, t.ExpiresAt = now.Add(24*time.Hour), now.Add(24*time.Hour+time.Minute)
		}, now, tokens.ErrInvalid},
		"half a sign-in": {func(t *tokens.Token) { t.Kind = tokens.Half }, now, tokens.ErrInvalid},
	} {
		token := access()
		test.change(&token)
		if _, err := tokens.NewSigner(r).Check(sign(t, r, token, account), tokens.Access, test.at, known); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The account's own secrets, and who it is, go into the key as well.
func TestTokensFollowTheAccount(t *testing.T) {
	r := ring(t, key("a", 1))
	signed := sign(t, r, access(), account)
	gone := errors.New("gone")
	for name, test := range map[string]struct {
		find func(tokens.Token) (tokens.Account, error)
		want error
	}{
		"another password": {func(tokens.Token) (tokens.Account, error) {
			return tokens.Account{TokenKey: "x", Secret: "secret", Life: time.Hour}, nil
		}, tokens.ErrInvalid},
		"secrets shifted": {func(tokens.Token) (tokens.Account, error) {
			return tokens.Account{TokenKey: "token keysec", Secret: "ret", Life: time.Hour}, nil
		}, tokens.ErrInvalid},
		"no token key": {func(tokens.Token) (tokens.Account, error) {
			return tokens.Account{Secret: "token keysecret", Life: time.Hour}, nil
		}, tokens.ErrInvalid},
		"gone": {func(tokens.Token) (tokens.Account, error) { return tokens.Account{}, gone }, gone},
	} {
		if _, err := tokens.NewSigner(r).Check(signed, tokens.Access, now, test.find); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	parts := strings.Split(signed, ".")
	other := base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf(
		`{"id":"2","type":"auth","collectionId":"users","refreshable":true,"iat":%d,"exp":%d}`, now.Unix(), now.Add(time.Minute).Unix())))
	if _, err := tokens.NewSigner(r).Check(parts[0]+"."+other+"."+parts[2], tokens.Access, now, known); !errors.Is(err, tokens.ErrInvalid) {
		t.Errorf("somebody else's: %v", err)
	}
}

// A token that was found good is not good for ever: its age and its account are looked at each time.
func TestRememberedTokens(t *testing.T) {
	s := tokens.NewSigner(ring(t, key("a", 1)))
	signed, err := s.Sign(access(), account)
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	for name, test := range map[string]struct {
		at      time.Time
		kind    string
		account tokens.Account
		failure error
		want    error
	}{
		"good":             {now, tokens.Access, account, nil, nil},
		"over":             {now.Add(15 * time.Minute), tokens.Access, account, nil, tokens.ErrExpired},
		"clock set back":   {now.Add(-time.Hour), tokens.Access, account, nil, tokens.ErrInvalid},
		"another password": {now, tokens.Access, tokens.Account{TokenKey: "x", Secret: "secret", Life: time.Hour}, nil, tokens.ErrInvalid},
		"another secret":   {now, tokens.Access, tokens.Account{TokenKey: "token key", Secret: "x", Life: time.Hour}, nil, tokens.ErrInvalid},
		"a shorter life":   {now, tokens.Access, tokens.Account{TokenKey: "token key", Secret: "secret", Life: time.Minute}, nil, tokens.ErrInvalid},
		"another kind":     {now, tokens.Half, account, nil, tokens.ErrInvalid},
		"gone":             {now, tokens.Access, account, gone, gone},
	} {
		if _, err := s.Check(signed, tokens.Access, now, known); err != nil {
			t.Fatal(err)
		}
		_, err := s.Check(signed, test.kind, test.at, func(tokens.Token) (tokens.Account, error) { return test.account, test.failure })
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	s := tokens.NewSigner(ring(b, key("a", 1)))
	signed, err := s.Sign(access(), account)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Check(signed, tokens.Access, now, known); err != nil {
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
	r := ring(f, key("a", 1))
	f.Add(sign(f, r, access(), account))
	f.Add("a.b.c")
	s := tokens.NewSigner(r)
	good := sign(f, r, access(), account)
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := s.Check(token, tokens.Access, now, known); err == nil && token != good {
			t.Errorf("%q passes", token)
		}
	})
}
