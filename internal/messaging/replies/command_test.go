package replies_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/messaging/replies"
)

// commands are whole texts with the command they must be read as.
var commands = map[replies.Command][]string{
	replies.Stop: {
		"STOP", "stop", "Stop.", "STOP!!!", " stop \n", "\"STOP\"", "stop 🛑", "ＳＴＯＰ", "S T O P", "stopppp", "stpo", "STOP\x00", "\u200fSTOP\u200e",
		"STOPALL", "stop all", "QUIT", "END", "end.", "REVOKE", "OPT OUT", "opt-out", "optout", "CANCEL", "UNSUBSCRIBE", "unsuscribe", "Unsubcribe me",
		"ALTO", "alto!", "PARAR", "Parar por favor", "pare", "cancelar", "¡ALTO!", "no más", "basta",
		"please stop", "stop please", "STOP thanks", "ok stop", "Hi, stop", "Yes stop", "stop now",
		"please stop texting me", "Stop texting me", "stop sending me texts", "Please stop sending me these text messages, thank you", "stop the reminders",
		"stop all messages", "can you please stop texting me?", "I want to stop receiving these messages", "I don't want these texts anymore",
		"don't text me", "Do not text me anymore", "do not contact me again", "don’t send me any more messages", "no more texts", "no more messages please",
		"quit texting me", "cancel my text messages", "end these reminders", "unsubscribe me from these messages", "remove me from your list",
		"take my number off your list", "take me off this list", "opt me out", "I revoke my consent", "I opt out of text messages", "leave me alone",
		"STOP. This is the wrong number", "Stop! I am not your patient", "I'm not Maria. Please stop texting me.", "Wrong number. STOP",
		"wrong number", "you have the wrong number", "número equivocado", "numero equivocado, no me escriban más",
		"no más mensajes", "no mas mensajes", "NO MÁS MENSAJES POR FAVOR", "no quiero más mensajes", "ya no quiero recibir mensajes",
		"por favor dejen de enviarme mensajes", "deje de mandarme mensajes", "no me envíen más mensajes", "no me manden mensajes", "no me escriban",
		"no me contacten más", "paren los mensajes", "alto a los mensajes", "cancelar mensajes", "basta de mensajes", "quítenme de la lista",
		"quiero cancelar los mensajes", "quiero dejar de recibir mensajes", "darme de baja", "no quiero mensajes de texto",
		"Revoco mi consentimiento", "STOP STOP STOP", "stop stop stop texting me", "STOP\n\nSent from my iPhone", "Enviado desde mi iPhone\n\nALTO\nSTOP", "Stop, I am fine",
		"remove me", "please remove me", "please remove my number", "delete my number", "borren mi número", "I withdraw consent", "I withdraw my consent", "I do not consent",
		"Do not call", "do not call me", "don't call me anymore", "no me llamen", "no me llamen más", "stop calling me", "no more calls", "no más llamadas", "terminar",
		"I no longer want these texts", "I no longer wish to receive messages", "por favor eliminen mi número",
	},
	replies.Start: {"START", "start", "Start please", "UNSTOP", "start!", "iniciar", "INICIAR", "comenzar", "reanudar por favor", "start again"},
	replies.Help:  {"HELP", "help", "Help?", "AYUDA", "¿Ayuda?", "INFO", "información", "info please", "heeelp"},
	replies.None: {
		"", " ", "\x00", "👍", "🛑❓", "I cannot stop coughing", "I can't stop coughing", "cancel my appointment", "Cancel appointment", "please cancel my appointment tomorrow",
		"can I stop taking the pills?", "should I stop?", "when does this end?", "I want to quit smoking", "I quit smoking", "the pain will not end",
		"don't stop", "don't stop texting me", "please do not stop the messages", "do not cancel my reminders", "never stop sending these", "I did not opt out",
		"no paren los mensajes", "no pare", "no dejen de mandar mensajes", "no quiero parar", "no cancelen los mensajes", "no cancelar",
		"stop texting me at night", "stop the reminders on weekends", "stop texting my wife", "stop sending the wrong time", "stop by the clinic",
		"bus stop", "The cuff does not stop inflating", "at the end of the day", "is this the end", "my weekend was good", "I took my meds. End", "ok cancel it for monday",
		"cita cancelar", "cancelar mi cita", "no puedo parar de toser", "quiero parar de fumar", "voy a parar en la farmacia", "alto riesgo", "¿puedo dejar de tomar la pastilla?",
		"mi presión está alta", "el número alto está mal", "more messages please", "I got your message", "thank you for the messages", "mensajes", "text me",
		"start when?", "when do I start the new pill", "I will start tomorrow", "my daughter will help me measure", "this did not help", "helpful", "thanks for your help",
		"help me", "help please", "ayuda por favor", "I need help", "don't call me now", "do not call me back", "I do not call", "no me llamen ahora", "it says: STOP", "The cuff shows:\nSTOP",
		"remove the cuff", "do not remove me", "no borren mi número", "delete my reading", "do not call the doctor", "no need to call", "every hour I stop, and walk",
		"no ayuda", "quiero más mensajes", "por favor mensajes", "I want more texts", "stop start", "who is this?", "¿quién es?",
	},
}

func TestCommands(t *testing.T) {
	for want, texts := range commands {
		for _, text := range texts {
			if got := replies.Read(text, replies.Requested{}).Command; got != want {
				t.Errorf("%q is read as %q, want %q", text, got, want)
			}
		}
	}
}

// TestCommandsInAnyDress repeats every command with the case, spaces, marks and invisible characters that phones add.
func TestCommandsInAnyDress(t *testing.T) {
	dresses := []func(string) string{
		strings.ToUpper, strings.ToLower,
		func(s string) string { return "  " + s + " \n" },
		func(s string) string { return "\u202e" + s + "\u202c" },
		func(s string) string { return strings.Join(strings.Split(s, ""), "\u200b") },
		func(s string) string { return "😀 " + s + " 🙏🏽" },
		func(s string) string { return strings.ReplaceAll(s, "'", "’") },
		func(s string) string { return strings.ReplaceAll(s, " ", "\u00a0 ") },
	}
	for want, texts := range commands {
		for _, text := range texts {
			for i, dress := range dresses {
				if got := replies.Read(dress(text), replies.Requested{}).Command; got != want {
					t.Errorf("%q in dress %d is read as %q, want %q", text, i, got, want)
				}
			}
		}
	}
}

// TestStopInCapitals: STOP in capitals at the end of a text in small letters is the command that the messages name; within its sentence it is a word.
func TestStopInCapitals(t *testing.T) {
	for text, want := range map[string]replies.Command{
		"chest pain STOP": replies.Stop, "128/82 STOP": replies.Stop, "me duele el pecho STOP": replies.Stop, "I feel great thanks STOP!": replies.Stop, "I am done UNSUBSCRIBE": replies.Stop,
		"chest pain stop": replies.None, "my chest pain won't STOP": replies.None, "make it STOP": replies.None, "I want the pain to STOP": replies.None, "it will not STOP": replies.None,
		"CHEST PAIN STOP": replies.None, "meet me at the bus STOP": replies.None, "the screen shows STOP": replies.None, "please don't STOP": replies.None, "STOP taking it?": replies.None,
	} {
		reply := replies.Read(text, replies.Requested{})
		if reply.Command != want || want == replies.Stop && !reply.HasMore {
			t.Errorf("%q is read as %q (more: %v), want %q", text, reply.Command, reply.HasMore, want)
		}
	}
}
