package messaging

import (
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Reasons why a message is not sent or was not delivered.
const (
	ReasonArchived    = "archived" // a deceased patient is archived
	ReasonNoConsent   = "no_consent"
	ReasonStopped     = "stopped"
	ReasonChannelOff  = "channel_off"
	ReasonNoPhone     = "no_phone" // none, or none that can be dialed
	ReasonHold        = "hold"
	ReasonQuietHours  = "quiet_hours"
	ReasonDailyLimit  = "daily_limit"
	ReasonWeeklyLimit = "weekly_limit"
	ReasonResolved    = "resolved"    // its cause no longer exists
	ReasonOutage      = "outage"      // the provider could not be reached in time
	ReasonOff         = "off"         // no provider is configured
	ReasonUnreadable  = "unreadable"  // a sealed value cannot be opened
	ReasonRefused     = "refused"     // by the provider
	ReasonUndelivered = "undelivered" // by the network
	ReasonNoAnswer    = "no_answer"   // the outcome is unknown
)

// Recipient has the facts that decide whether a patient may be sent a message.
type Recipient struct {
	Active    bool
	Consent   bool // a consent of the type messaging is in force
	OnHold    bool
	StoppedAt time.Time // zero unless the patient's phone sent STOP
	Wanted    collections.Channels
	Phone     phi.Text // as stored
}

// SuppressionReason returns why a message must not be sent on a channel; "" if it may. A hold silences automatic messages only.
// Source: 47 CFR 64.1200(a)(1), (a)(10); docs/decisions/messages.md, "Consent".
func (r Recipient) SuppressionReason(channel string, automatic bool) string {
	_, dialable := Dialable(r.Phone)
	switch {
	case !r.Active:
		return ReasonArchived
	case !r.StoppedAt.IsZero():
		return ReasonStopped
	case !r.Consent:
		return ReasonNoConsent
	case channel == collections.ChannelVoice && !r.Wanted.Voice, channel == collections.ChannelSMS && !r.Wanted.SMS:
		return ReasonChannelOff
	case !dialable:
		return ReasonNoPhone
	case automatic && r.OnHold:
		return ReasonHold
	}
	return ""
}

// Channel returns the channel of a message that names none: a text, or a call for a patient who wants calls only.
func (r Recipient) Channel() string {
	if !r.Wanted.SMS && r.Wanted.Voice {
		return collections.ChannelVoice
	}
	return collections.ChannelSMS
}

// Dialable returns a phone number in E.164 form, such as +12125550123. Ten digits are a number of
// the North American plan. A number with an extension is not dialable.
func Dialable(phone phi.Text) (number phi.Text, ok bool) {
	text := strings.TrimSpace(phone.Reveal())
	digits := patients.PhoneDigits(text)
	switch {
	case strings.ContainsAny(text, "xX") || digits == "":
		return "", false
	case strings.HasPrefix(text, "+") && len(digits) >= 8 && len(digits) <= 15 && digits[0] != '0':
		return phi.Text("+" + digits), true
	case strings.HasPrefix(text, "+"):
		return "", false
	case len(digits) == 10 && digits[0] >= '2':
		return phi.Text("+1" + digits), true
	case len(digits) == 11 && digits[0] == '1' && digits[1] >= '2':
		return phi.Text("+" + digits), true
	}
	return "", false
}

// Bounds of automatic messages to one patient.
const (
	mostPerDay  = 1
	mostPerWeek = 3
)

// LimitWindow is how far back [LimitReached] must have the automatic messages: seven of the
// patient's days, each of up to 25 hours.
const LimitWindow = 8 * 24 * time.Hour

// LimitReached returns the limit that one more automatic message would exceed; "" for none. A day is the patient's day; a week is seven of them,
// today included. sent are the times of earlier automatic messages that were not suppressed.
func LimitReached(sent []time.Time, now time.Time, zone *time.Location) string {
	today, weekAgo := now.In(zone).Format(time.DateOnly), now.In(zone).AddDate(0, 0, -6).Format(time.DateOnly)
	inDay, inWeek := 0, 0
	for _, at := range sent {
		switch day := at.In(zone).Format(time.DateOnly); {
		case day >= today:
			inDay, inWeek = inDay+1, inWeek+1
		case day >= weekAgo:
			inWeek++
		}
	}
	switch {
	case inDay >= mostPerDay:
		return ReasonDailyLimit
	case inWeek >= mostPerWeek:
		return ReasonWeeklyLimit
	}
	return ""
}
