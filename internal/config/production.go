package config

import (
	"errors"
	"strings"

	"filippo.io/age"
)

// checkProduction wants what production cannot do without, and none of what is for trying out.
func (l *loader) checkProduction(s *Settings) {
	if !s.Production() {
		return
	}
	if s.PublicURL == "" { // a wrong one would stay in identifiers and mails for good
		l.report(Prefix+"PUBLIC_URL", "is required with "+Prefix+"ENVIRONMENT=production")
	}
	if s.OIDC.Configured() && !strings.HasPrefix(s.OIDC.Issuer, "https://") { // its keys come over that line: whoever changes them on the way is everybody
		l.report(Prefix+"OIDC_ISSUER", "must be https in production")
	}
	if len(s.WebPush.DevAllowedHosts) > 0 {
		l.report(Prefix+"WEB_PUSH_DEV_ALLOWED_HOSTS", "must be empty in production")
	}
	if len(s.Outbound.DevAllowedHosts) > 0 {
		l.report(Prefix+"OUTBOUND_DEV_ALLOWED_HOSTS", "must be empty in production")
	}
}

// ageRecipient is the public half of a key that opens backups.
func ageRecipient(text string) (string, error) {
	if _, err := age.ParseX25519Recipient(text); err != nil {
		return "", errors.New("must be a list of age recipients, age1…")
	}
	return text, nil
}
