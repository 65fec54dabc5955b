package config_test

import (
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/vigilhealth/vigil/internal/config"
)

func TestEventSettings(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	const directoryKey = "VIGIL_EVENTS_DIRECTORY_KEY=0123456789abcdef0123"
	keys := "VIGIL_EVENTS_IDENTITIES=" + identity.String()
	for _, test := range []struct {
		name    string
		environ []string
		problem string // "" for none
	}{
		{"a practice", []string{"VIGIL_EVENTS_URL=tls://a:4222,tls://b:4222", "VIGIL_PRACTICE=elm-street", directoryKey, keys}, ""},
		{"two keys", []string{"VIGIL_EVENTS_URL=nats://127.0.0.1:4222", "VIGIL_PRACTICE=elm", directoryKey, keys + ", " + identity.String()}, ""},
		{"an ingress", []string{"VIGIL_EVENTS_URL=tls://a:4222", directoryKey}, ""},
		{"no directory key", []string{"VIGIL_EVENTS_URL=tls://a:4222"}, "VIGIL_EVENTS_DIRECTORY_KEY"},
		{"a practice without a key", []string{"VIGIL_EVENTS_URL=tls://a:4222", "VIGIL_PRACTICE=elm", directoryKey}, "VIGIL_EVENTS_IDENTITIES"},
		{"a damaged key", []string{"VIGIL_EVENTS_IDENTITIES=AGE-SECRET-KEY-1MARKER"}, "VIGIL_EVENTS_IDENTITIES"},
		{"a reserved name", []string{"VIGIL_PRACTICE=dead"}, "VIGIL_PRACTICE"},
		{"a name with a dot", []string{"VIGIL_PRACTICE=elm.street"}, "VIGIL_PRACTICE"},
		{"a web address", []string{"VIGIL_EVENTS_URL=https://a", directoryKey}, "VIGIL_EVENTS_URL"},
		{"in the clear", []string{"VIGIL_ENVIRONMENT=production", "VIGIL_EVENTS_URL=tls://a,nats://b", directoryKey}, "VIGIL_EVENTS_URL"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := config.Load(test.environ)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if (test.problem == "") != (text == "") || !strings.Contains(text, test.problem) {
				t.Errorf("the problems are %q, want one of %q", text, test.problem)
			}
			if strings.Contains(text, "MARKER") {
				t.Error("a key is quoted")
			}
		})
	}
}
