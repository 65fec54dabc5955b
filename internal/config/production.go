package config

import (
	"errors"
	"strings"

	"filippo.io/age"
)

// checkProduction requires the settings that production needs and rejects those for development.
func (l *loader) checkProduction(s *Settings) {
	if !s.IsProduction() {
		return
	}
	if s.PublicURL == "" { // a wrong one would remain in identifiers and mails
		l.report(Prefix+"PUBLIC_URL", "is required with "+Prefix+"ENVIRONMENT=production")
	}
	if s.OIDC.Configured() && !strings.HasPrefix(s.OIDC.Issuer, "https://") { // an attacker on the connection could replace the signing keys
		l.report(Prefix+"OIDC_ISSUER", "must be https in production")
	}
	if len(s.WebPush.DevAllowedHosts) > 0 {
		l.report(Prefix+"WEB_PUSH_DEV_ALLOWED_HOSTS", "must be empty in production")
	}
	if len(s.Outbound.DevAllowedHosts) > 0 {
		l.report(Prefix+"OUTBOUND_DEV_ALLOWED_HOSTS", "must be empty in production")
	}
}

// ageRecipient validates the public key of an age recipient that can decrypt backups.
func ageRecipient(text string) (string, error) {
	if _, err := age.ParseX25519Recipient(text); err != nil {
		return "", errors.New("must be a list of age recipients, age1…")
	}
	return text, nil
}
