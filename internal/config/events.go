package config

import (
	"errors"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
)

// Events configures the stream of device events that several practices share. Source: docs/decisions/events.md.
type Events struct {
	Practice     string        `env:"PRACTICE" is:"practice" doc:"this practice's name in the company, 1 to 40 small letters, digits and dashes; required with VIGIL_EVENTS_URL, except for ingress and dispatcher"`
	URL          string        `env:"EVENTS_URL" is:"natsurls" doc:"addresses of the NATS servers, tls://host:4222, comma separated; empty = the practice has its own webhooks only"`
	Credentials  Secret        `env:"EVENTS_CREDENTIALS" doc:"content of the NATS credentials file"`
	Stream       string        `env:"EVENTS_STREAM" envDefault:"VIGIL_EVENTS" is:"code" doc:"name of the JetStream stream"`
	Replicas     int           `env:"EVENTS_REPLICAS" envDefault:"3" min:"1" max:"5" doc:"servers that store each event"`
	Retention    time.Duration `env:"EVENTS_RETENTION" envDefault:"72h" min:"1h" max:"720h" doc:"how long the stream keeps an event"`
	MaxBytes     int           `env:"EVENTS_MAX_BYTES" envDefault:"0" min:"0" max:"1000000000000000" doc:"size at which the stream is full and senders get 503; 0 = the servers' limit"`
	Replay       time.Duration `env:"EVENTS_REPLAY" envDefault:"10m" min:"0s" max:"24h" doc:"how far before its stored position a starting practice reads the stream again"`
	DirectoryKey Secret        `env:"EVENTS_DIRECTORY_KEY" is:"shown" doc:"secret of the hashes in the device directory, the same for ingress, dispatcher and practices"`
	Identities   Secret        `env:"EVENTS_IDENTITIES" is:"ageidentities" doc:"private age keys (AGE-SECRET-KEY-1…) of the practice, comma separated; the first is current, former ones stay for the retention"`

	OrganizationRecipient  string `env:"ORGANIZATION_RECIPIENT" is:"agerecipient" doc:"the company's age recipient (age1…), for events without one owner"`
	OrganizationIdentities Secret `env:"ORGANIZATION_IDENTITIES" is:"ageidentities" doc:"its private keys, for the dispatcher only"`
}

// Configured reports whether there is a stream.
func (e Events) Configured() bool { return e.URL != "" }

// AgeIdentities returns private age keys of a setting, the current one first.
func AgeIdentities(keys Secret) (identities []age.Identity, err error) {
	for text := range strings.SplitSeq(keys.Reveal(), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		identity, err := age.ParseX25519Identity(text)
		if err != nil {
			return nil, errAgeIdentity // age's own error may quote the key
		}
		identities = append(identities, identity)
	}
	return identities, nil
}

// Recipient returns the public key of the practice's current private key.
func (e Events) Recipient() string {
	identities, err := AgeIdentities(e.Identities)
	if err != nil || len(identities) == 0 {
		return "" // checked at the start
	}
	return identities[0].(*age.X25519Identity).Recipient().String()
}

var errAgeIdentity = errors.New("must be a list of private age keys, AGE-SECRET-KEY-1…")

// ageIdentities checks private keys.
func ageIdentities(text string) (string, error) {
	_, err := AgeIdentities(Secret(text))
	return text, err
}

// natsURLs checks the addresses of the servers.
func natsURLs(text string) (string, error) {
	for address := range strings.SplitSeq(text, ",") {
		scheme, host, _ := strings.Cut(strings.TrimSpace(address), "://")
		if (scheme != "tls" && scheme != "nats") || host == "" {
			return text, errors.New("must be addresses of the form tls://host:4222, comma separated")
		}
	}
	return text, nil
}

// reservedPractices have subjects of their own in the stream.
var reservedPractices = []string{"unassigned", "dead"}

// checkEvents checks what a practice needs to read the stream, and that nothing travels in the clear.
func (l *loader) checkEvents(s *Settings) {
	l.checkLease(s)
	e := s.Events
	if slices.Contains(reservedPractices, e.Practice) {
		l.report(Prefix+"PRACTICE", "must be another name: "+strings.Join(reservedPractices, " and ")+" are reserved")
	}
	if !e.Configured() {
		return
	}
	if e.DirectoryKey == "" {
		l.report(Prefix+"EVENTS_DIRECTORY_KEY", "is required with "+Prefix+"EVENTS_URL")
	}
	if e.Practice != "" && e.Identities == "" {
		l.report(Prefix+"EVENTS_IDENTITIES", "is required with "+Prefix+"PRACTICE and "+Prefix+"EVENTS_URL")
	}
	if strings.Contains(e.URL, "nats://") && s.IsProduction() {
		l.report(Prefix+"EVENTS_URL", "must be tls:// in production")
	}
}

// checkWebhooks checks the schedule of outgoing webhooks.
func (l *loader) checkWebhooks(w Webhooks) {
	if len(w.RetryDelays) != 9 {
		l.report(Prefix+"WEBHOOKS_RETRY_DELAYS", "must list nine durations")
	}
}
