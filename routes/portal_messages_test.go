package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A patient and the care team write to each other in the portal; nothing is sent outside, and nothing needs consent.
func TestStoryPortalMessages(t *testing.T) {
	c := newIngestingClinic(t)
	c.t = t
	own := c.enroll(object{"phone": anaPhone})
	ada := vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(own))
	path := "/patients/" + own + "/messages/"
	text := "Your pressure was 150/90 on Monday, Ms. Doe.\nPlease take lisinopril in the morning."
	sent := c.request(authz.Nurse, "POST", path, object{"template": "free_text", "channel": "portal", "text": text}).want(201).object()
	if sent["state"] != "delivered" || sent["text"] != text {
		t.Errorf("sent %v", sent)
	}
	c.requestAs(ada, "POST", path, object{"text": "Thank you. Should I stop the water pill?"}).want(201).wantAt(object{"direction": "in", "author": "patient", "state": "received"})
	c.requestAs(ada, "POST", path, object{"text": "STOP"}).want(201)
	c.requestAs(ada, "POST", path, object{"text": "128/82"}).want(201)
	list := c.requestAs(ada, "GET", path, nil).results()
	if len(list) != 4 || list[3]["author"] != "staff" || slices.ContainsFunc(list, func(m object) bool { return m["read_by"] != nil }) {
		t.Errorf("the patient sees %v", list)
	}
	if strings.Contains(fmt.Sprint(list), "@") {
		t.Errorf("an address of staff in %v", list)
	}
	if c.stopped(own) || len(c.observations(own)) != 0 {
		t.Error("a message in the portal is a command or a reading")
	}
	c.requestAs(ada, "POST", path, object{"text": "No puedo respirar"}).want(201)
	if list := c.request(authz.Nurse, "GET", "/escalations/?patient_id="+own, nil).results(); len(list) != 1 || list[0]["priority"] != "urgent" {
		t.Errorf("escalations: %v", list)
	}
	list = c.requestAs(ada, "GET", path, nil).results()
	if len(list) != 6 || !slices.ContainsFunc(list, func(m object) bool {
		return m["template"] == "answer_emergency" && m["channel"] == "portal" && m["state"] == "delivered" && strings.Contains(fmt.Sprint(m["text"]), "911")
	}) {
		t.Errorf("the thread: %v", list)
	}
	if kinds := c.queryRows(t, `SELECT DISTINCT kind FROM announcements WHERE kind LIKE '%text%' OR kind LIKE 'message%' ORDER BY kind`); !slices.Equal(kinds, []string{"message_for_patient", "text_received"}) {
		t.Errorf("announced %q", kinds)
	}
}

func TestPortalMessagesRefused(t *testing.T) {
	c := newIngestingClinic(t)
	c.t = t
	own, other := c.enroll(nil), c.enroll(nil)
	ada := vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(own))
	path := "/patients/" + own + "/messages/"
	for body, field := range map[string]string{
		`{}`: "text", `{"text":" "}`: "text", `{"text":null}`: "text", `{"text":"` + strings.Repeat("a", 4001) + `"}`: "text", `{"text":7}`: "text",
	} {
		c.requestAs(ada, "POST", path, body).wantFields(field)
	}
	c.requestAs(ada, "POST", "/patients/"+other+"/messages/", object{"text": "x"}).want(404)
	c.requestAs(ada, "GET", "/patients/"+other+"/messages/", nil).want(404)
	send := func(patient string, body object) reply {
		return c.request(authz.Nurse, "POST", "/patients/"+patient+"/messages/", body)
	}
	send(own, object{"template": "question", "channel": "portal"}).wantFields("template")
	send(own, object{"template": "free_text", "channel": "portal"}).wantFields("text")
	send(other, object{"template": "free_text", "channel": "portal", "text": "Hello"}).want(400, "invalid_state")
	c.request(authz.Admin, "POST", "/patients/"+own+"/archive/", object{"reason": "moved away"}).want(200)
	send(own, object{"template": "free_text", "channel": "portal", "text": "Hello"}).want(400, "invalid_state")
	c.requestAs(ada, "POST", path, object{"text": "Hello"}).want(400, "invalid_state")
}
