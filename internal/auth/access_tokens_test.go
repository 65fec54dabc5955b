package auth_test

import (
	"encoding/base64"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// evictOnSave binds the hooks that the program binds.
func evictOnSave(app core.App, e *auth.Engine) {
	evict := func(event *core.RecordEvent) error {
		e.Evict(event.Record.Id)
		return event.Next()
	}
	app.OnRecordAfterUpdateSuccess(collections.Users).BindFunc(evict)
	app.OnRecordAfterDeleteSuccess(collections.Users).BindFunc(evict)
}

func TestAuthenticateRefusals(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Nurse)
	session := login(t, e, app, user, clock)
	users := user.Collection()
	claims := func(change jwt.MapClaims) jwt.MapClaims {
		c := jwt.MapClaims{
			"id": user.Id, "type": "auth", "collectionId": users.Id, "refreshable": true, "iat": clock.Unix(), "exp": clock.Add(time.Minute).Unix(),
		}
		for name, value := range change {
			c[name] = value
			if value == nil {
				delete(c, name)
			}
		}
		return c
	}
	sign := func(method jwt.SigningMethod, key any, change jwt.MapClaims) string {
		unsigned := jwt.NewWithClaims(method, claims(change))
		unsigned.Header["kid"] = vigiltest.Sealer().PrimaryKeyID()
		token, err := unsigned.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	key := []byte(user.TokenKey() + users.AuthToken.Secret) // everything the database holds
	ours := func(change func(*auth.TokenClaims)) string {
		token := auth.TokenClaims{Kind: auth.AccessToken, Collection: users.Id, Holder: user.Id, IssuedAt: clock, ExpiresAt: clock.Add(time.Minute)}
		change(&token)
		signed, err := auth.NewSigner(vigiltest.Sealer()).Sign(token,
			auth.Account{TokenKey: user.TokenKey(), Secret: users.AuthToken.Secret})
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	native := func(make func() (string, error)) string {
		token, err := make()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	superuser := core.NewRecord(must(t)(app.FindCachedCollectionByNameOrId(core.CollectionNameSuperusers)))
	superuser.SetEmail("root@vigil.test")
	superuser.SetPassword(vigiltest.Password)
	if err := app.Save(superuser); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(session.Access, ".")
	payload := base64.RawURLEncoding.EncodeToString([]byte(`{"id":"` + user.Id + `","type":"auth","collectionId":"` + users.Id + `","exp":9999999999}`))
	for name, test := range map[string]struct{ token, want string }{
		"the real one":             {session.Access, ""},
		"made here":                {ours(func(*auth.TokenClaims) {}), ""},
		"made for tests":           {vigiltest.Token(t, user, clock), ""},
		"made by PocketBase":       {native(user.NewAuthToken), "token_invalid"},
		"ten years by PocketBase":  {native(func() (string, error) { return user.NewStaticAuthToken(87600 * time.Hour) }), "token_invalid"},
		"made from the database":   {sign(jwt.SigningMethodHS256, key, nil), "token_invalid"},
		"none":                     {"", "not_authenticated"},
		"garbage":                  {"garbage", "token_invalid"},
		"three dots":               {"a.b.c", "token_invalid"},
		"cut":                      {session.Access[:len(session.Access)-1], "token_invalid"},
		"other spelling":           {parts[0] + "." + parts[1] + "." + respell(parts[2]), "token_invalid"},
		"padded":                   {session.Access + "=", "token_invalid"},
		"other payload":            {parts[0] + "." + payload + "." + parts[2], "token_invalid"},
		"no signature":             {parts[0] + "." + parts[1] + ".", "token_invalid"},
		"algorithm none":           {sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil), "token_invalid"},
		"algorithm HS512":          {sign(jwt.SigningMethodHS512, key, nil), "token_invalid"},
		"other key":                {sign(jwt.SigningMethodHS256, []byte("x"), nil), "token_invalid"},
		"empty key":                {sign(jwt.SigningMethodHS256, []byte(users.AuthToken.Secret), jwt.MapClaims{"id": ""}), "token_invalid"},
		"secret without token key": {sign(jwt.SigningMethodHS256, []byte(users.AuthToken.Secret), jwt.MapClaims{"id": "000000000000099"}), "token_invalid"},
		"expired":                  {ours(func(t *auth.TokenClaims) { t.IssuedAt, t.ExpiresAt = clock.Add(-time.Minute), clock }), "token_expired"},
		"good for ten years":       {ours(func(t *auth.TokenClaims) { t.ExpiresAt = clock.AddDate(10, 0, 0) }), "token_invalid"},
		"issued tomorrow": {ours(func(t *auth.TokenClaims) {
			t.IssuedAt, t.ExpiresAt = clock.Add(24*time.Hour), clock.Add(24*time.Hour+time.Minute)
		}), "token_invalid"},
		"no expiry":        {sign(jwt.SigningMethodHS256, key, jwt.MapClaims{"exp": nil}), "token_invalid"},
		"expiry no number": {sign(jwt.SigningMethodHS256, key, jwt.MapClaims{"exp": "tomorrow"}), "token_invalid"},
		"other type":       {ours(func(t *auth.TokenClaims) { t.Kind = core.TokenTypeFile }), "token_invalid"},
		"half a sign-in":   {ours(func(t *auth.TokenClaims) { t.Kind = auth.SecondFactorToken }), "token_invalid"},
		"other collection": {ours(func(t *auth.TokenClaims) { t.Collection = superuser.Collection().Id }), "token_invalid"},
		"other user":       {ours(func(t *auth.TokenClaims) { t.Holder = "000000000000099" }), "token_invalid"},
		"a superuser's":    {native(superuser.NewAuthToken), "token_invalid"},
		"a file token":     {native(user.NewFileToken), "token_invalid"},
		"a reset token":    {native(user.NewPasswordResetToken), "token_invalid"},
		"a refresh token":  {session.Refresh, "token_invalid"},
	} {
		_, err := e.Authenticate(app, test.token, clock)
		wantCode(t, name, err, test.want)
	}
	_, err := e.Authenticate(app, session.Access, clock.Add(15*time.Minute-1))
	wantCode(t, "in its last moment", err, "")
	_, err = e.Authenticate(app, session.Access, clock.Add(15*time.Minute))
	wantCode(t, "after fifteen minutes", err, "token_expired")
}

func must(t *testing.T) func(*core.Collection, error) *core.Collection {
	return func(c *core.Collection, err error) *core.Collection {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// respell changes only the unused bits of the last base64 character.
func respell(signature string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, signature[len(signature)-1])
	return signature[:len(signature)-1] + string(alphabet[last^1])
}

// TestPocketBaseDoesNotSign checks that PocketBase and the engine do not accept each other's tokens: the secrets in the database alone sign
// nothing.
func TestPocketBaseDoesNotSign(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Nurse)
	session := login(t, e, app, user, time.Now())
	if _, err := app.FindAuthRecordByToken(session.Access, core.TokenTypeAuth); err == nil {
		t.Error("the database is enough to check a token, so it is enough to sign one")
	}
	holder, err := e.Holder(app, session.Access, time.Now())
	if err != nil || holder.Id != user.Id {
		t.Errorf("PocketBase's endpoints get %v", err)
	}
}

// TestUserChangesApplyImmediately checks that changes of a user apply to the next request.
func TestUserChangesApplyImmediately(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*collections.User)
		want   string
		role   authz.Role
	}{
		"role":       {func(u *collections.User) { u.Set("role", "ma") }, "", authz.MA},
		"state":      {func(u *collections.User) { u.Set("is_active", false) }, "token_invalid", ""},
		"password":   {func(u *collections.User) { u.SetPassword("Another-Horse-43") }, "token_invalid", ""},
		"address":    {func(u *collections.User) { u.SetEmail("new@vigil.test") }, "token_invalid", ""},
		"token key":  {func(u *collections.User) { u.RefreshTokenKey() }, "token_invalid", ""},
		"first name": {func(u *collections.User) { u.Set("first_name", "Other") }, "", authz.Nurse},
	} {
		app, e := vigiltest.NewApp(t), newEngine()
		evictOnSave(app, e)
		user := vigiltest.User(t, app, authz.Nurse)
		session := login(t, e, app, user, clock)
		if caller := callerOf(t, e, app, session.Access); caller.Role != authz.Nurse {
			t.Fatalf("%s: %+v", name, caller)
		}
		test.change(user)
		if err := app.Save(user); err != nil {
			t.Fatal(err)
		}
		caller, err := e.Authenticate(app, session.Access, clock)
		wantCode(t, name, err, test.want)
		if caller.Role != test.role {
			t.Errorf("%s: role %q", name, caller.Role)
		}
	}
}

func TestDeletedUserIsRefused(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	evictOnSave(app, e)
	user := vigiltest.User(t, app, authz.Nurse)
	token := vigiltest.Token(t, user, clock)
	callerOf(t, e, app, token)
	if err := app.Delete(user); err != nil {
		t.Fatal(err)
	}
	_, err := e.Authenticate(app, token, clock)
	wantCode(t, "deleted", err, "token_invalid")
}

// TestCachedUsersExpire checks that changes by another process apply within 30 seconds.
func TestCachedUsersExpire(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Nurse)
	token := vigiltest.Token(t, user, clock)
	callerOf(t, e, app, token)
	if _, err := app.NonconcurrentDB().NewQuery(`UPDATE users SET is_active = FALSE`).Execute(); err != nil {
		t.Fatal(err)
	}
	_, err := e.Authenticate(app, token, clock.Add(29*time.Second))
	wantCode(t, "cached", err, "")
	_, err = e.Authenticate(app, token, clock.Add(30*time.Second))
	wantCode(t, "read again", err, "token_invalid")
}

// TestEvictionWinsOverConcurrentReaders checks that no request that begins after a save uses the state before it.
func TestEvictionWinsOverConcurrentReaders(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	evictOnSave(app, e)
	user := vigiltest.User(t, app, authz.Nurse)
	token := vigiltest.Token(t, user, clock)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = e.Authenticate(app, token, clock)
				}
			}
		})
	}
	for n := range 50 {
		active := n%2 == 1
		user.Set("is_active", active)
		if err := app.Save(user); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Authenticate(app, token, clock); (err == nil) != active {
			t.Fatalf("round %d: active %v, but %v", n, active, err)
		}
	}
	close(stop)
	readers.Wait()
}

func callerOf(t testing.TB, e *auth.Engine, app core.App, token string) auth.Caller {
	t.Helper()
	caller, err := e.Authenticate(app, token, clock)
	if err != nil {
		t.Fatal(err)
	}
	return caller
}

func BenchmarkAuthenticate(b *testing.B) {
	app, e := vigiltest.NewApp(b), newEngine()
	token := login(b, e, app, vigiltest.User(b, app, authz.Nurse), clock).Access
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := e.Authenticate(app, token, clock); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkPocketBaseLoader measures PocketBase's own check of the same token.
func BenchmarkPocketBaseLoader(b *testing.B) {
	app, e := vigiltest.NewApp(b), newEngine()
	token := login(b, e, app, vigiltest.User(b, app, authz.Nurse), time.Now()).Access
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := app.FindAuthRecordByToken(token, core.TokenTypeAuth); err != nil {
				b.Error(err)
			}
		}
	})
}
