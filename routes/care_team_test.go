package routes_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestCareTeam(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(nil)
	path := "/patients/" + id + "/care-team/"
	provider, nurse, ma := c.people[authz.Provider].Number(), c.people[authz.Nurse].Number(), c.people[authz.MA].Number()
	gone := vigiltest.User(t, c.app, authz.Nurse, vigiltest.Inactive()).Number()
	c.request(authz.DataMonitor, "GET", path, nil).want(200).wantAt(object{"primary_provider_id": nil, "primary_provider_name": nil})

	set := c.request(authz.Provider, "PUT", path, object{"primary_provider_id": provider, "members": []object{{"user_id": nurse}, {"user_id": ma, "role": "Scribe"}}}).want(200)
	set.wantAt(object{"primary_provider_id": float64(provider), "primary_provider_name": "Test Person"})
	members := func(r reply) (list []string) {
		for _, m := range r.object()["members"].([]any) {
			list = append(list, m.(object)["role"].(string)+" "+m.(object)["name"].(string))
		}
		return list
	}
	if got := members(set); !slices.Equal(got, []string{"nurse Test Person", "Scribe Test Person"}) {
		t.Errorf("the members are %v", got)
	}
	c.request(authz.Nurse, "GET", "/patients/"+id+"/", nil).want(200).wantAt(object{"primary_provider_id": float64(provider)})

	before := len(c.events(id))
	c.request(authz.Provider, "PUT", path, object{"primary_provider_id": provider, "members": []object{{"user_id": nurse}, {"user_id": ma, "role": "Scribe"}}}).want(200)
	c.request(authz.Provider, "PUT", path, object{}).want(200)
	if len(c.events(id)) != before {
		t.Error("a change of nothing is recorded")
	}
	kept := c.request(authz.Provider, "PUT", path, object{"members": []object{{"user_id": nurse, "role": "Case manager"}}}).want(200)
	if got := members(kept); !slices.Equal(got, []string{"Case manager Test Person"}) {
		t.Errorf("the members are %v", got)
	}
	kept.wantAt(object{"primary_provider_id": float64(provider)})
	emptied := c.request(authz.Provider, "PUT", path, object{"primary_provider_id": nil, "members": nil}).want(200)
	if emptied.wantAt(object{"primary_provider_id": nil}); len(members(emptied)) != 0 {
		t.Error("the team is not empty")
	}
	if events := c.events(id); !slices.Contains(events, "care_team.update") {
		t.Errorf("the audit trail has %v", events)
	}

	for name, test := range map[string]struct {
		body  object
		wrong []string
	}{
		"primary is a nurse":       {object{"primary_provider_id": nurse}, []string{"primary_provider_id"}},
		"unknown primary provider": {object{"primary_provider_id": 999}, []string{"primary_provider_id"}},
		"primary of wrong type":    {object{"primary_provider_id": "1"}, []string{"primary_provider_id"}},
		"member is inactive":       {object{"members": []object{{"user_id": nurse}, {"user_id": gone}}}, []string{"members.1.user_id"}},
		"member is an admin":       {object{"members": []object{{"user_id": c.people[authz.Admin].Number()}}}, []string{"members.0.user_id"}},
		"member is a patient":      {object{"members": []object{{"user_id": c.people[authz.Patient].Number()}}}, []string{"members.0.user_id"}},
		"member without an id":     {object{"members": []object{{"role": "x"}}}, []string{"members.0.user_id"}},
		"member with a low id":     {object{"members": []object{{"user_id": -1}}}, []string{"members.0.user_id"}},
		"member twice":             {object{"members": []object{{"user_id": nurse}, {"user_id": nurse}}}, []string{"members.1.user_id"}},
		"member is no object":      {object{"members": []any{7}}, []string{"members.0"}},
		"members are no list":      {object{"members": object{}}, []string{"members"}},
		"role is long":             {object{"members": []object{{"user_id": nurse, "role": strings.Repeat("x", 51)}}}, []string{"members.0.role"}},
		"too many":                 {object{"members": slices.Repeat([]object{{"user_id": nurse}}, 51)}, []string{"members"}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := c.request(authz.Provider, "PUT", path, test.body)
			answer.t = t
			answer.wantFields(test.wrong...)
		})
	}
	c.wantRoles("PUT", "/patients/"+unknownPatient+"/care-team/", object{}, archivers[:3]...)
	c.wantRoles("GET", "/patients/"+unknownPatient+"/care-team/", nil, authz.Roles...)
}
