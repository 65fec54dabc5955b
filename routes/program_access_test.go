package routes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A stolen access token of an administrator makes no access that outlives it: new clients, secrets and keys, and webhooks that send values or to
// another address, need a fresh sign-in or the password. Every administrator learns of them.
func TestProgramAccessNeedsAFreshSignIn(t *testing.T) {
	c := newClinic(t)
	other := vigiltest.User(t, c.app, authz.Admin)
	admin := c.people[authz.Admin]
	fresh := c.login(admin.Email(), vigiltest.Password).want(200).text("access")
	hook := func(changes object) object {
		body := object{"url": "https://receiver.example.org/hook", "events": []string{"alert.raised"}}
		for name, value := range changes {
			body[name] = value
		}
		return body
	}
	mails := func(user string) int {
		return len(c.queryColumn("SELECT id FROM mails WHERE template = 'program_access' AND user = '" + user + "'"))
	}
	wantMails := func(what string, want int) {
		t.Helper()
		for _, user := range []string{admin.Id, other.Id} {
			if got := mails(user); got != want {
				t.Errorf("%s: %d mails, want %d", what, got, want)
			}
		}
	}
	client := c.send(fresh, "POST", "/clients/", object{"name": "Cloud", "scopes": []string{"ingest"}, "with_secret": true}).want(201).text("id")
	wantMails("a new client", 1)
	plain := c.send(fresh, "POST", "/webhooks/", hook(nil)).want(201).text("id")
	wantMails("a webhook without values", 1)
	sending := c.send(fresh, "POST", "/webhooks/", hook(object{"include_values": true})).want(201).text("id")
	wantMails("a webhook with values", 2)

	c.now = c.now.Add(11 * time.Minute)
	doors := []struct {
		method, path string
		body         object
		status       int
	}{
		{"POST", "/clients/", object{"name": "Thief", "scopes": []string{"patients.read"}}, 201},
		{"POST", "/clients/" + client + "/rotate-secret/", object{}, 200},
		{"PATCH", "/clients/" + client + "/", object{"jwks": setOf(t, "a", &ecKey(t).PublicKey)}, 200},
		{"PATCH", "/clients/" + client + "/", object{"jwks_url": "https://keys.example.org/jwks"}, 200},
		{"PATCH", "/clients/" + client + "/", object{"scopes": []string{"ingest", "system/*.rs"}}, 200},
		{"PATCH", "/clients/" + client + "/", object{"allowed_cidrs": []string{"203.0.113.0/24"}}, 200},
		{"POST", "/webhooks/", hook(object{"include_values": true}), 201},
		{"PATCH", "/webhooks/" + plain + "/", object{"include_values": true}, 200},
		{"PATCH", "/webhooks/" + sending + "/", object{"url": "https://thief.example.org/hook"}, 200},
	}
	before := vigiltest.RowCounts(t, c.app)
	for _, door := range doors {
		c.send(fresh, door.method, door.path, door.body).want(403, "reauthentication_required")
		for _, none := range []any{nil, ""} {
			door.body["current_password"] = none
			c.send(fresh, door.method, door.path, door.body).want(403, "reauthentication_required")
		}
	}
	c.send(fresh, "POST", "/clients/"+client+"/rotate-secret/", nil).want(403, "reauthentication_required")
	c.send(fresh, "POST", "/clients/", object{"name": "Thief"}).wantFields("scopes")
	doors[0].body["current_password"] = "wrong"
	c.send(fresh, "POST", "/clients/", doors[0].body).want(401, "authentication_failed")
	added := vigiltest.RowsAdded(t, c.app, before)
	for _, table := range []string{"clients", "webhooks", "mails"} {
		if added[table] != 0 {
			t.Errorf("refused requests add %v", added)
		}
	}
	for i, door := range doors {
		door.body["current_password"] = vigiltest.Password
		c.send(fresh, door.method, door.path, door.body).want(door.status)
		wantMails(fmt.Sprint(door.method, " ", door.path), 3+i)
	}
	// What takes access away, or changes none, needs nothing more.
	for _, body := range []object{{"name": "Renamed"}, {"scopes": []string{"ingest"}}, {"active": false}} {
		c.send(fresh, "PATCH", "/clients/"+client+"/", body).want(200)
	}
	c.send(fresh, "PATCH", "/webhooks/"+sending+"/", object{"include_values": false, "active": false}).want(200)
	c.send(fresh, "DELETE", "/clients/"+client+"/", nil).want(204)
	wantMails("less access", 2+len(doors))
	found := c.requestAs(other, "GET", "/notifications/", nil).want(200).body
	if !strings.Contains(found, admin.Email()+` created the API client \"Thief\".`) || !strings.Contains(found, "thief.example.org") {
		t.Errorf("the other administrator is told %s", found)
	}
}

// A machine client that manages webhooks needs no password.
func TestProgramAccessOfClients(t *testing.T) {
	c := newClinic(t)
	token := c.token(c.addClient(object{"scopes": []string{"webhooks.manage", "alerts.read"}}), "")
	made := c.requestAsClient(token, "POST", "/webhooks/", object{
		"url": "https://receiver.example.org/hook", "events": []string{"alert.raised"}, "include_values": true,
	}).want(201).text("id")
	c.requestAsClient(token, "PATCH", "/webhooks/"+made+"/", object{"url": "https://other.example.org/hook"}).want(200)
}
