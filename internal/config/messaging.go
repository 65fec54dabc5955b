package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Configured reports whether messages are sent.
func (m Messaging) Configured() bool { return m.Provider != "none" }

var (
	timeOfDay = regexp.MustCompile(`^([01]\d|2[0-3]):[0-5]\d$`)
	hours     = regexp.MustCompile(`^(([01]\d|2[0-3]):[0-5]\d)-(([01]\d|2[0-3]):[0-5]\d|24:00)$`)
)

func checkTimeOfDay(text string) (string, error) {
	if !timeOfDay.MatchString(text) {
		return text, errors.New("must be a time of day such as 18:00")
	}
	return text, nil
}

func checkHours(text string) (string, error) {
	if from, until, _ := strings.Cut(text, "-"); !hours.MatchString(text) || from >= until {
		return text, errors.New("must be a range of hours such as 08:00-21:00")
	}
	return text, nil
}

// checkMessaging checks what each provider needs.
func (l *loader) checkMessaging(m *Messaging) {
	require := func(given bool, name string) {
		if !given {
			l.report(Prefix+name, "is required with "+Prefix+"MESSAGING="+m.Provider)
		}
	}
	switch m.Provider {
	case "twilio":
		if m.URL == "" {
			m.URL = "https://api.twilio.com"
		}
		m.URL = strings.TrimRight(m.URL, "/")
		require(m.Account != "", "MESSAGING_ACCOUNT")
		require(m.Secret != "", "MESSAGING_SECRET")
		require(m.From != "", "MESSAGING_FROM")
	case "http":
		require(m.URL != "", "MESSAGING_URL")
		require(m.From != "", "MESSAGING_FROM")
		if key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Secret.Reveal(), "whsec_")); err != nil || len(key) < 24 {
			l.report(Prefix+"MESSAGING_SECRET", "must be whsec_ and the base64 of at least 24 bytes")
		}
	case "file":
		require(m.URL != "", "MESSAGING_URL")
	}
	if strings.HasPrefix(m.URL, "http:") && !strings.HasPrefix(m.URL, "http://127.0.0.1") && m.Provider != "file" {
		l.warnings = append(l.warnings, Prefix+"MESSAGING_URL is plain http; it is used only for a host of "+Prefix+"OUTBOUND_DEV_ALLOWED_HOSTS")
	}
}

// checkPatientMessages checks the settings of texts to patients and of the portal.
func (l *loader) checkPatientMessages(s *Settings) {
	l.checkMessaging(&s.Messaging)
	l.checkPortal(s.Portal)
}

// checkPortal bounds the practice's own words.
func (l *loader) checkPortal(p Portal) {
	for name, text := range map[string]string{"PORTAL_ADVICE": p.Advice, "PORTAL_ADVICE_ES": p.AdviceSpanish} {
		if utf8.RuneCountInString(text) > maxAdvice {
			l.report(Prefix+name, fmt.Sprintf("must have at most %d characters", maxAdvice))
		}
	}
}

const maxAdvice = 300

func (l *loader) checkSMTP(m SMTP) {
	if m.Host != "" && m.From == "" {
		l.report(Prefix+"SMTP_FROM", "is required with "+Prefix+"SMTP_HOST")
	}
}
