package routes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// Source: docs/decisions/messages.md, "Consent".
func TestPatientMessagingFields(t *testing.T) {
	c := newClinic(t)
	path := "/patients/" + c.enroll(nil) + "/"
	channels := func() object {
		return c.request(authz.Nurse, "GET", path, nil).want(200).object()["messaging"].(object)
	}
	patch := func(body string) reply {
		return replyOf(t, body, c.call(authz.Nurse, "PATCH", path, body))
	}
	if got := channels(); got["sms"] != true || got["voice"] != false || got["consent"] != false || got["stopped_at"] != nil {
		t.Errorf("before anything is stored: %v", got)
	}
	for _, step := range []struct {
		patch                string
		language, reminder   any
		wantsSMS, wantsVoice bool
	}{
		{`{"preferred_language":"ES-mx","reminder_at":"17:30"}`, "es-MX", "17:30", true, false},
		{`{"messaging":{"voice":true}}`, "es-MX", "17:30", true, true},
		{`{"messaging":{"sms":false}}`, "es-MX", "17:30", false, true},
		{`{"messaging":{"consent":true,"stopped_at":"2026-01-15T13:45:00Z"}}`, "es-MX", "17:30", false, true},
		{`{"messaging":null,"preferred_language":null,"reminder_at":null}`, nil, nil, true, false},
	} {
		got := patch(step.patch).want(200).object()
		wants := got["messaging"].(object)
		if got["preferred_language"] != step.language || got["reminder_at"] != step.reminder || wants["sms"] != step.wantsSMS || wants["voice"] != step.wantsVoice ||
			wants["consent"] != false || wants["stopped_at"] != nil {
			t.Errorf("%s: %v, %v, %v", step.patch, got["preferred_language"], got["reminder_at"], wants)
		}
	}
	for field, values := range map[string][]string{
		"preferred_language": {`"klingonese-language"`, `"x"`, `"und"`, `7`, `"e n"`},
		"reminder_at":        {`"24:00"`, `"8:00"`, `"18:00:00"`, `"noon"`, `18`},
		"messaging":          {`"sms"`, `[]`, `true`},
		"messaging.sms":      {`{"sms":"yes"}`, `{"sms":1}`},
	} {
		for _, value := range values {
			member, _, _ := strings.Cut(field, ".")
			patch(fmt.Sprintf(`{%q:%s}`, member, value)).want(400).wantFields(field)
		}
	}

	consent := func(granted, expires string) int64 {
		made := c.request(authz.Nurse, "POST", path+"consents/", object{"type": "messaging", "method": "written", "granted_at": granted, "expires_at": expires}).want(201).object()
		return int64(made["id"].(float64))
	}
	day := func(days int) string { return c.now.AddDate(0, 0, days).Format(time.RFC3339) }
	consent(day(-10), day(-1))
	if channels()["consent"] != false {
		t.Error("an expired consent counts")
	}
	number := consent(day(-1), day(1))
	if channels()["consent"] != true {
		t.Error("a consent in force does not count")
	}
	c.request(authz.Nurse, "POST", fmt.Sprintf("%sconsents/%d/revoke/", path, number), object{"reason": "Asked us to."}).want(200)
	if channels()["consent"] != false {
		t.Error("a revoked consent counts")
	}
}
