package messaging

import (
	"time"

	"github.com/vigilhealth/vigil/collections"
)

// The answers to what patients text. They ignore consent, stops, hours and limits, because the
// patient has just written: the carriers require the answers to STOP and HELP, and an emergency
// cannot wait. Source: CTIA, Messaging Principles and Best Practices (2023), 5.1.3;
// docs/decisions/messages.md, "Replies".
const (
	AnswerStop       Template = "answer_stop"
	AnswerStart      Template = "answer_start"
	AnswerHelp       Template = "answer_help"
	AnswerEmergency  Template = "answer_emergency"
	AnswerSelfHarm   Template = "answer_self_harm"
	AnswerCheckValue Template = "answer_again"
)

// confirmationWithin is how soon after a stop its confirmation may be sent. Source: 47 CFR 64.1200(a)(12).
const confirmationWithin = 5 * time.Minute

// suppressionReason returns why an answer is not sent, or "" and the recipient: the phone that texted.
func (t Template) suppressionReason(m *collections.Message, now time.Time) (reason string, to Recipient) {
	if collections.Readable(m.ProxyRecord()) != nil {
		return ReasonUnreadable, to
	}
	phone, dialable := Dialable(m.Phone())
	within := staleAfter
	if t == AnswerStop {
		within = confirmationWithin
	}
	switch {
	case !dialable: // a short code, or a sender's name
		return ReasonNoPhone, to
	case now.Sub(m.CreatedAt()) > within:
		return ReasonOutage, to
	}
	return "", Recipient{Phone: phone}
}

// IsAnswer reports whether a template answers what a patient texted.
func (t Template) IsAnswer() bool { return answers[t] != nil }

// answers omit how to stop where it would contradict their content.
var answers = map[Template]map[string]string{
	AnswerStop: {
		English: "{practice}: You will get no more messages from us. Text START to get them again.",
		Spanish: "{practice}: No recibira mas mensajes. Envie START para recibirlos otra vez.",
	},
	AnswerStart: {
		English: "{practice}: You will get our messages again. Text STOP to end them, HELP for help.",
		Spanish: "{practice}: Recibira otra vez los mensajes. Envie STOP para no recibirlos, AYUDA para ayuda.",
	},
	AnswerHelp: {
		English: "{practice}: Reminders about home readings. Call us with questions; in an emergency call 911. Text STOP to end messages.",
		Spanish: "{practice}: Avisos sobre sus lecturas. Si tiene preguntas, llame; en una emergencia, llame al 911. STOP para no recibirlos.",
	},
	AnswerEmergency: {
		English: "{practice}: If this is an emergency, call 911 now. These messages are not watched. We are alerting your care team.",
		Spanish: "{practice}: Si es una emergencia, llame al 911 ahora. Puede que nadie lea estos mensajes. Avisamos a su equipo.",
	},
	AnswerSelfHarm: {
		English: "{practice}: You are not alone. Call or text 988 now, or call 911. We are alerting your care team.",
		Spanish: "{practice}: No esta solo. Llame o escriba al 988 ahora, o llame al 911. Avisamos a su equipo.",
	},
	AnswerCheckValue: {
		English: "{practice}: Is that right? Please check what your device shows and text it again.",
		Spanish: "{practice}: ¿Es correcto? Revise lo que muestra su equipo y envielo otra vez.",
	},
}

func init() {
	for template, forms := range answers {
		texts[template] = forms
	}
}
