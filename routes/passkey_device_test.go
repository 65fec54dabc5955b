package routes_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/descope/virtualwebauthn"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// party is the service as these tests' browser sees it.
var party = virtualwebauthn.RelyingParty{ID: "vigil.example.org", Name: "RPM", Origin: "https://vigil.example.org"}

// device is a security key with one passkey, and the browser that uses it.
type device struct {
	c     *clinic
	at    virtualwebauthn.RelyingParty // the origin that the browser reports
	holds virtualwebauthn.Authenticator
	key   virtualwebauthn.Credential
	id    string // the passkey's id in paths
}

func (c *clinic) device() *device {
	return &device{c: c, at: party, holds: virtualwebauthn.NewAuthenticator(), key: newKey()}
}

// newKey returns a P-256 credential. The library writes coordinates without leading zeros, which no browser does, so
// such a key is discarded.
func newKey() virtualwebauthn.Credential {
	const whole = 77 // bytes of a COSE key with two coordinates of 32
	for {
		if key := virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2); len(key.Key.AttestationData()) == whole {
			return key
		}
	}
}

// create answers registration options as the browser does.
func (d *device) create(options reply) json.RawMessage {
	d.c.t.Helper()
	prompt, err := virtualwebauthn.ParseAttestationOptions(options.want(200).body)
	if err != nil {
		d.c.t.Fatal(err)
	}
	d.holds.Options.UserHandle = []byte(prompt.UserID)
	return json.RawMessage(virtualwebauthn.CreateAttestationResponse(d.at, d.holds, d.key, *prompt))
}

// get answers authentication options as the browser does; the device counts its uses.
func (d *device) get(options reply) json.RawMessage {
	d.c.t.Helper()
	prompt, err := virtualwebauthn.ParseAssertionOptions(options.want(200).body)
	if err != nil {
		d.c.t.Fatal(err)
	}
	d.key.Counter++
	return json.RawMessage(virtualwebauthn.CreateAssertionResponse(d.at, d.holds, d.key, *prompt))
}

func (c *clinic) registrationOptions(token string) reply {
	return c.send(token, "POST", "/auth/passkeys/registration-options/", object{})
}

func (c *clinic) registerWith(token, name string, credential json.RawMessage) reply {
	return c.send(token, "POST", "/auth/passkeys/", object{"name": name, "credential": credential})
}

// enrolled returns a device with a passkey of the user.
func (c *clinic) enrolled(token string) *device {
	c.t.Helper()
	d := c.device()
	made := c.registerWith(token, "Desk key", d.create(c.registrationOptions(token))).want(201)
	d.id = made.number()
	return d
}

// number returns the id of the created object as in paths.
func (r reply) number() string {
	r.t.Helper()
	id, _ := r.object()["id"].(float64)
	return strconv.FormatInt(int64(id), 10)
}

// signIn uses the passkey: alone, or as the second step of a temporary token.
func (d *device) signIn(temporary ...string) reply {
	d.c.t.Helper()
	body := object{}
	if len(temporary) > 0 {
		body["temporary_token"] = temporary[0]
	}
	options := d.c.send("", "POST", "/auth/passkeys/authentication-options/", body)
	if options.status != 200 {
		return options
	}
	body["credential"] = d.get(options)
	return d.c.send("", "POST", "/auth/passkeys/authenticate/", body)
}

// step returns the temporary token that a correct password yields.
func (c *clinic) step(user *collections.User, methods ...string) string {
	c.t.Helper()
	prompt := c.login(user.Email(), vigiltest.Password).want(401, "totp_required")
	var got []string
	for _, method := range prompt.object()["methods"].([]any) {
		got = append(got, method.(string))
	}
	if !slices.Equal(got, methods) {
		c.t.Errorf("methods %v, want %v", got, methods)
	}
	return prompt.text("temporary_token")
}

// audited returns the audit events with a prefix, in order, without the prefix.
func (c *clinic) audited(prefix string) string {
	c.t.Helper()
	rows, err := collections.AuditRows(c.app, "", "~", 10_000)
	if err != nil {
		c.t.Fatal(err)
	}
	var list []string
	for _, row := range rows {
		if rest, found := strings.CutPrefix(row.Event, prefix); found {
			list = append(list, strings.TrimPrefix(rest, "_"))
		}
	}
	return strings.Join(list, " ")
}

// forge answers a challenge that the service did not issue.
func (d *device) forge() reply {
	d.key.Counter++
	shown := virtualwebauthn.CreateAssertionResponse(d.at, d.holds, d.key, virtualwebauthn.AssertionOptions{Challenge: make([]byte, 56), RelyingPartyID: d.at.ID})
	return d.c.send("", "POST", "/auth/passkeys/authenticate/", object{"credential": json.RawMessage(shown)})
}

// failedSignIns returns the number of failed sign-ins that count.
func (c *clinic) failedSignIns() (sum int) {
	c.t.Helper()
	if err := c.app.DB().NewQuery("SELECT COALESCE(SUM(failures), 0) FROM login_failures").Row(&sum); err != nil {
		c.t.Fatal(err)
	}
	return sum
}

// change gives the user another token key, as a new password does.
func (c *clinic) change(user *collections.User) {
	c.t.Helper()
	current, err := collections.FindUser(c.app, user.Id)
	if err != nil {
		c.t.Fatal(err)
	}
	current.RefreshTokenKey()
	if err := c.app.Save(current); err != nil {
		c.t.Fatal(err)
	}
}
