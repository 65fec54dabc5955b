package routes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

func TestConsents(t *testing.T) {
	c := newClinic(t)
	id, other := c.enroll(nil), c.enroll(nil)
	path := "/patients/" + id + "/consents/"
	given := c.request(authz.MA, "POST", path, object{
		"type": "rpm", "method": "verbal", "granted_at": "2026-01-15T12:00:00-05:00", "obtained_by": "Nurse Joy",
		"notes": "Said yes on the phone.\nTwice.", "document_reference": nil,
	}).want(400) // noon in New York is in the future
	given.wantFields("granted_at")
	given = c.request(authz.MA, "POST", path, object{
		"type": "rpm", "method": "verbal", "granted_at": "2026-01-15T07:00:00-05:00", "obtained_by": "Nurse Joy",
		"notes": "Said yes on the phone.\nTwice.", "expires_at": "2026-01-16T00:00:00Z",
	}).want(201)
	given.wantAt(object{
		"id": 1.0, "patient_id": id, "type": "rpm", "method": "verbal", "status": "active", "granted_at": "2026-01-15T12:00:00Z",
		"expires_at": "2026-01-16T00:00:00Z", "obtained_by": "Nurse Joy", "recorded_by": c.people[authz.MA].Email(),
		"notes": "Said yes on the phone.\nTwice.", "document_reference": nil, "revoked_at": nil, "created_at": "2026-01-15T13:45:00Z",
	})
	c.request(authz.Nurse, "POST", path, object{"type": "ccm", "method": "written", "granted_at": "2026-01-10", "document_reference": "Scan 7"}).want(201).
		wantAt(object{"granted_at": "2026-01-10T05:00:00Z", "document_reference": "Scan 7", "id": 2.0})
	c.request(authz.Nurse, "POST", "/patients/"+other+"/consents/", object{"type": "rpm", "method": "electronic", "granted_at": "2026-01-10"}).want(201)

	statuses := func() (list []string) {
		for _, consent := range c.request(authz.DataMonitor, "GET", path, nil).results() {
			list = append(list, consent["type"].(string)+" "+consent["status"].(string))
		}
		return list
	}
	if got := statuses(); !slices.Equal(got, []string{"rpm active", "ccm active"}) { // newest first
		t.Errorf("the consents are %v", got)
	}
	c.now = c.now.Add(24 * time.Hour)
	c.request(authz.MA, "POST", path+"2/revoke/", object{"reason": "Changed her mind"}).want(200).wantAt(object{
		"status":        "revoked",
		"revoke_reason": "Changed her mind", "revoked_at": "2026-01-16T13:45:00Z", "revoked_by": c.people[authz.MA].Email(),
	})
	if got := statuses(); !slices.Equal(got, []string{"rpm expired", "ccm revoked"}) {
		t.Errorf("the consents are %v", got)
	}
	c.request(authz.MA, "POST", path+"2/revoke/", object{"reason": "Again"}).want(400, "invalid_state")
	c.request(authz.MA, "POST", path+"1/revoke/", object{"reason": "Too late"}).want(400, "invalid_state")
	c.request(authz.MA, "POST", path+"2/revoke/", object{"reason": ""}).wantFields("reason")
	for _, wrong := range []string{"3", "99", "0", "x", "02"} { // 3 is another patient's
		c.request(authz.MA, "POST", path+wrong+"/revoke/", object{"reason": "x"}).want(404, "not_found")
	}
	if events := c.events(id); !slices.Contains(events, "consent.grant") || !slices.Contains(events, "consent.revoke") {
		t.Errorf("the audit trail has %v", events)
	}
}

func TestConsentRefusals(t *testing.T) {
	c := newClinic(t)
	path := "/patients/" + c.enroll(nil) + "/consents/"
	valid := object{"type": "rpm", "method": "written", "granted_at": "2026-01-10T10:00:00Z"}
	for name, test := range map[string]struct {
		changes object
		wrong   []string
	}{
		"nothing":           {object{"type": nil, "method": nil, "granted_at": nil}, []string{"type", "method", "granted_at"}},
		"unknown values":    {object{"type": "hipaa", "method": "telepathy"}, []string{"type", "method"}},
		"verbal, no notes":  {object{"method": "verbal"}, []string{"notes"}},
		"not a time":        {object{"granted_at": "yesterday"}, []string{"granted_at"}},
		"future":            {object{"granted_at": "2026-01-16T00:00:00Z"}, []string{"granted_at"}},
		"expires before":    {object{"expires_at": "2026-01-09T10:00:00Z"}, []string{"expires_at"}},
		"expires at once":   {object{"expires_at": "2026-01-10T10:00:00Z"}, []string{"expires_at"}},
		"long":              {object{"notes": strings.Repeat("x", 4001), "document_reference": strings.Repeat("x", 501), "obtained_by": strings.Repeat("x", 255)}, []string{"notes", "document_reference", "obtained_by"}},
		"control character": {object{"obtained_by": "a\u0000b"}, []string{"obtained_by"}},
	} {
		t.Run(name, func(t *testing.T) {
			body := object{}
			for _, from := range []object{valid, test.changes} {
				for field, value := range from {
					body[field] = value
				}
			}
			answer := c.request(authz.Nurse, "POST", path, body)
			answer.t = t
			answer.wantFields(test.wrong...)
		})
	}
	c.wantRoles("POST", "/patients/"+unknownPatient+"/consents/", valid, clinical...)
	c.wantRoles("GET", "/patients/"+unknownPatient+"/consents/", nil, authz.Roles...)
	c.wantRoles("POST", "/patients/"+unknownPatient+"/consents/1/revoke/", object{"reason": "x"}, clinical...)
}
