package messaging

import (
	"encoding/xml"
	"net/url"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// optOuts are the commands that Twilio handles. Source: Twilio, "Advanced Opt-Out", OptOutType.
var optOuts = map[string]ProviderCommand{"STOP": ProviderStop, "START": ProviderStart, "HELP": ProviderHelp}

// ReadText implements [Provider]: a text, or the key pressed in a call that the service made. Pictures are counted, not stored.
func (t Twilio) ReadText(body []byte) (in Incoming, err error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return in, fault.New(fault.Invalid, "parse_error", "The body is not a form.")
	}
	id, number, text := "MessageSid", "From", form.Get("Body")
	in.Channel = collections.ChannelSMS
	if form.Get("CallSid") != "" {
		id, number, text = "CallSid", "To", form.Get("Digits")
		in.Channel = collections.ChannelVoice
	}
	checks := validate.NewChecks()
	in.ID = checks.Text(id, validate.Of(form.Get(id)), validate.Required(100).Identifier())
	in.From = phi.Text(checks.Text(number, validate.Of(form.Get(number)), validate.Required(40).Identifier()))
	if runes := []rune(text); len(runes) > maxIncoming {
		text = string(runes[:maxIncoming])
	}
	if media := form.Get("NumMedia"); media != "" && media != "0" {
		text = strings.TrimSpace(text + "\n[" + media + " attachments, not stored]")
	}
	in.Text, in.Command = storable(text), optOuts[strings.ToUpper(form.Get("OptOutType"))]
	if in.Channel == collections.ChannelVoice {
		in.ID += "/" + text // the call has the id already
		if text == optOutKey {
			in.Command = ProviderStop
		}
	}
	return in, checks.Err()
}

// Markup implements [Provider]: nothing to a text, because answers are messages of their own, so that they are stored; in a call, the confirmation.
func (t Twilio) Markup(in Incoming, lang string) []byte {
	var answer struct {
		XMLName xml.Name `xml:"Response"`
		Say     *speech  `xml:",omitempty"`
	}
	if in.Command == ProviderStop && in.Channel == collections.ChannelVoice {
		answer.Say = &speech{Language: voices[lang], Text: stopConfirmed[lang]}
	}
	encoded, err := xml.Marshal(answer)
	if err != nil {
		return nil // unreachable: constants always encode
	}
	return append([]byte(xml.Header), encoded...)
}

// stopConfirmed confirms the key to opt out.
var stopConfirmed = map[string]string{
	English: "You will get no more messages from us. Goodbye.", Spanish: "No recibirá más mensajes. Adiós.",
}
