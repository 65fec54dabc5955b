package routes_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/messaging"
)

// A practice without a name has the same rules for what staff write.
func TestStoryFreeTextWithoutPracticeName(t *testing.T) {
	c := newTextingClinic(t, jsonProvider)
	messaging.Enable(c.app, messaging.Practice{Hours: messaging.Hours{From: "00:00", Until: "23:59"}})
	patient := c.enroll(object{"phone": anaPhone})
	c.consentToMessages(patient)
	path := "/patients/" + patient + "/messages/"
	for _, text := range []string{"you have diabetes", "Your blood pressure is high", "Call Dr. Smith", "https://x.co", "Metformin refill ready", "call Juan", "uno ochenta"} {
		c.request(authz.Nurse, "POST", path, object{"template": "free_text", "text": text}).wantFields("text")
	}
	for _, text := range []string{"Call 312-555-0100.", "Your visit is Tuesday at 3:30 pm.", "Your visit is on Dec 3"} {
		c.request(authz.Nurse, "POST", path, object{"template": "free_text", "text": text}).want(201)
	}
}

// escalated returns the priority of the patient's only escalation, "" for none.
func (c *clinic) escalated(patient string) string {
	c.t.Helper()
	list := c.request(authz.Nurse, "GET", "/escalations/?patient_id="+patient, nil).results()
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprint(list[0]["priority"])
}

// After a request of staff that names no kind, an answer is what the patient's devices measure.
func TestStoryAnswerToRequestOfStaff(t *testing.T) {
	for _, test := range []struct {
		devices  []string
		text     string
		filed    string // the field and value
		priority string // of the escalation
	}{
		{[]string{"blood_pressure"}, "99/70", "systolic 99", ""},
		{[]string{"blood_pressure"}, "88/50", "systolic 88", ""}, // a warning
		{[]string{"blood_pressure"}, "70/40", "systolic 70", "stat"},
		{[]string{"blood_pressure"}, "128 82", "systolic 128", ""},
		{[]string{"blood_glucose"}, "45", "glucose_mg_dl 45", "stat"},
		{[]string{"blood_glucose"}, "110", "glucose_mg_dl 110", ""},
		{[]string{"blood_glucose"}, "30", "", "urgent"},
		{[]string{"blood_glucose"}, "19", "", "urgent"},
		{[]string{"blood_glucose"}, "LO", "", "urgent"},
		{[]string{"blood_glucose"}, "5.5", "", ""},
		{[]string{"pulse_oximetry"}, "85", "spo2 85", "stat"},
		{[]string{"pulse_oximetry"}, "85/120", "", "urgent"},
		{[]string{"thermometer"}, "104", "temperature_c 40", "stat"},
		{[]string{"blood_pressure", "blood_glucose"}, "99/70", "systolic 99", ""},
		{[]string{"blood_pressure", "pulse_oximetry"}, "97/70", "", ""},
		{[]string{"blood_pressure", "pulse_oximetry"}, "85/60", "", "urgent"},
		{[]string{"blood_pressure"}, "spo2 97", "spo2 97", ""},
	} {
		t.Run(strings.Join(test.devices, " ")+" "+test.text, func(t *testing.T) {
			c := newTextingClinic(t, jsonProvider)
			patient := c.enroll(object{"phone": anaPhone})
			c.consentToMessages(patient)
			for i, device := range test.devices {
				c.request(authz.Admin, "POST", "/devices/assign/", object{"device_id": fmt.Sprint("D-", i), "patient_id": patient, "device_type": device}).want(200)
			}
			c.request(authz.Nurse, "POST", "/patients/"+patient+"/messages/", object{"template": "take_again"}).want(201)
			if _, err := c.app.DB().NewQuery(`UPDATE messages SET state = 'sent' WHERE direction = 'out'`).Execute(); err != nil {
				t.Fatal(err)
			}
			c.text(anaPhone, test.text).want(200)
			filed := ""
			if list := c.observations(patient); len(list) > 0 {
				field, _, _ := strings.Cut(test.filed, " ")
				filed = fmt.Sprint(field, " ", list[0][field])
			}
			if got := c.escalated(patient); filed != test.filed || got != test.priority {
				t.Errorf("filed %q with escalation %q, want %q with %q", filed, got, test.filed, test.priority)
			}
		})
	}
}

// A call by the JSON form names a key to stop, which is taken with the channel voice; in a text the same figure is no stop.
func TestStoryKeyToStopAsJSON(t *testing.T) {
	c := newTextingClinic(t, jsonProvider)
	ana := c.enroll(object{"phone": anaPhone})
	c.requestReading(ana, "blood_glucose")
	send := func(id, text string, channel any) reply {
		raw, err := json.Marshal(object{"id": id, "from": anaPhone, "to": nil, "text": text, "channel": channel})
		if err != nil {
			t.Fatal(err)
		}
		return c.postText(raw, "application/json", standardHeaders(t, raw, c.now))
	}
	send("k0", "9", "fax").wantFields("channel")
	for i, channel := range []any{nil, "sms"} {
		if send(fmt.Sprint("k1", i), "9", channel).want(200); c.stopped(ana) {
			t.Fatalf("the text 9 by %v stopped the messages", channel)
		}
	}
	if send("k2", "2", "voice").want(200); c.stopped(ana) || c.escalated(ana) != "" {
		t.Error("key 2 is taken for something")
	}
	send("k3", "9", "voice").want(200)
	if !c.stopped(ana) {
		t.Error("key 9 does not stop the messages")
	}
	send("k3", "9", "voice").want(200).wantAt(object{"status": "duplicate"})
	c.wantAnswers()
	if by := c.queryRows(t, `SELECT channel || ' ' || read_by FROM messages WHERE provider_id = 'k3'`); !slices.Equal(by, []string{"voice system"}) {
		t.Errorf("stored as %q", by)
	}
}

// A call for help is answered as an emergency and reaches a person; the command alone is answered with help.
func TestStoryCallForHelp(t *testing.T) {
	for text, want := range map[string][]string{
		"HELP": {"answer_help", "en", ""}, "ayuda": {"answer_help", "es", ""}, "Help me please": {"answer_emergency", "en", "urgent"}, "necesito ayuda": {"answer_emergency", "es", "urgent"},
		"auxilio": {"answer_emergency", "es", "urgent"}, "infarto": {"answer_emergency", "es", "urgent"}, "I need help with my cuff": {"", "", ""},
	} {
		t.Run(text, func(t *testing.T) {
			c := newTextingClinic(t, jsonProvider)
			ana := c.enroll(object{"phone": anaPhone})
			c.text(anaPhone, text).want(200)
			var answer []string
			if want[0] != "" {
				answer = []string{want[0] + " " + want[1]}
			}
			if got := c.queryRows(t, `SELECT template || ' ' || language FROM messages WHERE direction = 'out'`); !slices.Equal(got, answer) || c.escalated(ana) != want[2] {
				t.Errorf("answered %q with escalation %q, want %q", got, c.escalated(ana), want)
			}
			if unread := c.queryRows(t, `SELECT id FROM messages WHERE direction = 'in' AND read_at = ''`); (len(unread) == 1) == (want[0] == "answer_help") {
				t.Errorf("%d texts wait for a person", len(unread))
			}
		})
	}
}

// A stop beside an emergency stops the messages, is answered as both, and reaches a person.
func TestStoryStopBesideEmergency(t *testing.T) {
	c := newTextingClinic(t, jsonProvider)
	ana := c.enroll(object{"phone": anaPhone})
	c.text(anaPhone, "chest pain STOP").want(200)
	if !c.stopped(ana) || c.escalated(ana) != "urgent" {
		t.Errorf("stopped %v, escalation %q", c.stopped(ana), c.escalated(ana))
	}
	c.wantAnswers("answer_stop", "answer_emergency")
	if unread := c.queryRows(t, `SELECT id FROM messages WHERE direction = 'in' AND read_at = ''`); len(unread) != 1 {
		t.Errorf("%d texts wait for a person", len(unread))
	}
}

// A value that no device shows is asked for again, once in ten minutes, and without a request it is escalated as a milder one is.
func TestStoryValueBeyondDevices(t *testing.T) {
	c := newTextingClinic(t, jsonProvider)
	c.now = c.now.Truncate(10 * time.Minute)
	ana := c.enroll(object{"phone": anaPhone})
	c.text(anaPhone, "pulse 25").want(200)
	if got := c.escalated(ana); got != "urgent" {
		t.Errorf("escalation %q", got)
	}
	c.wantAnswers("answer_again")
	c.requestReading(ana, "blood_pressure")
	for range 3 {
		c.now = c.now.Add(time.Minute)
		c.text(anaPhone, "300/20").want(200)
	}
	c.wantAnswers("answer_again")
	c.now = c.now.Add(10 * time.Minute)
	c.text(anaPhone, "300/20").want(200)
	c.wantAnswers("answer_again", "answer_again")
}

// A phone written with the zero of its country is dialed without it, and its STOP is the patient's.
func TestStoryTrunkZero(t *testing.T) {
	c := newTextingClinic(t, jsonProvider)
	patient := c.enroll(object{"phone": "+44 (0)7700 900009"})
	c.text("+447700900009", "STOP").want(200)
	if !c.stopped(patient) {
		t.Error("the messages go on after STOP")
	}
}
