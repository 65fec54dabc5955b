package replies_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/messaging/replies"
)

var emergencies = map[replies.Emergency][]string{
	replies.Danger: {
		"chest pain", "CHEST PAIN", "I have chest pain", "i am having chest pains", "pain in my chest", "pain across the chest", "my chest hurts", "chest is hurting bad",
		"my chest feels really tight", "chest tightness", "pressure in my chest", "there is a pressure on my chest", "my chest is heavy", "chst pain", "chest pian", "cheast pain",
		"chestpain", "chest-pain", "chest pain!!!", "Having CHEST\u200b PAIN now", "my chest won't stop hurting", "stop texting, chest pain",
		"can't breathe", "cant breathe", "can’t breathe", "CANT BREATHE", "can´t breathe", "I cannot breathe", "can not breathe well", "can't breath", "cant brethe", "cantbreathe",
		"I can't really breathe", "couldn't breathe", "unable to breathe", "trouble breathing", "having troble breathing", "difficulty breathing", "hard to breathe",
		"struggling to breathe", "short of breath", "so short of breath", "shortness of breath", "out of breath", "can't catch my breath", "gasping for air", "not breathing",
		"he is not breathing", "choking", "can't breatheeeee", "c a n t breathe",
		"heart attack", "I think I'm having a heart attack", "having a stroke", "stroke?", "my face is drooping", "face droop", "slurred speech", "can't speak", "can't move my arm",
		"my arm is numb", "numbness on one side", "I passed out", "passing out", "about to pass out", "I fainted", "fainting", "she is unconscious", "unresponsive", "seizure", "seizures",
		"bleeding a lot", "heavy bleeding", "won't stop bleeding", "can't stop the bleeding", "bleeding heavily", "I fell", "I fell and can't get up", "fell down the stairs",
		"overdose", "I overdosed", "took too many pills", "worst headache of my life", "throat is closing", "lips are blue", "coughing blood", "coughing up blood", "vomiting blood",
		"call 911", "911", "should I call 911", "emergency", "this is an emergency!", "need an ambulance", "I'm dying", "I think I am going to die", "help me I can't breathe",
		"no I can't breathe", "no chest pain but can't breathe", "not only chest pain", "no, chest pain", "no fever and chest pain", "chest pain no better",
		"no chest pain yesterday. chest pain today", "isn't chest pain an emergency?", "no chest pain, shortness of breath", "188/121 chest pain", "STOP I have chest pain",
		"dolor de pecho", "DOLOR DE PECHO", "tengo dolor de pecho", "dolor en el pecho", "dolor d pecho", "dolor en mi pecho", "me duele el pecho", "el pecho me duele", "me duele mucho el pecho",
		"presión en el pecho", "opresion en el pecho", "pecho apretado", "siento el pecho apretado", "dolr de pecho", "dolor de pexo", "ardor en el pecho",
		"no puedo respirar", "No puedo respirar bien", "no puedo rrespirar", "nopuedo respirar", "no puede respirar", "me cuesta respirar", "me cuesta mucho respirar", "dificultad para respirar",
		"falta de aire", "me falta el aire", "me falta aire", "sin aire", "me ahogo", "me estoy ahogando", "no respira",
		"ataque al corazón", "ataque cardíaco", "infarto", "creo que es un infarto", "derrame cerebral", "me desmayé", "me desmaye", "se desmayó", "desmayo", "perdí el conocimiento",
		"está inconsciente", "convulsiones", "sangrando mucho", "mucha sangre", "no para de sangrar", "sobredosis", "me caí", "me caí y no me puedo levantar", "no me puedo levantar",
		"emergencia", "es una emergencia", "necesito una ambulancia", "llamen al 911", "me estoy muriendo", "me muero", "no siento el brazo", "no puedo hablar", "cara caída", "tosiendo sangre",
		"no tengo dolor de pecho pero no puedo respirar",
		"help me", "Help me please", "please help", "help please", "I need help", "need help now", "send help", "HELP ME", "Hi, I need help", "please help, I feel bad", "we need help asap",
		"ayúdame", "ayúdenme", "ayuda por favor", "necesito ayuda", "por favor necesito ayuda", "auxilio", "socorro", "helpme", "HELP! my wife is on the floor", "somebody help", "Can somebody help me", "help 911", "¿alguien me puede ayudar? ayuda",
		"chest is killing me", "I can't get air", "can't get enough air", "i cnt breathe", "i cant breth", "can t breathe", "sob at rest", "sob with exertion", "so sob when walking",
		"she is not responding", "not responding", "he isn't responding", "not waking up", "my wife won't wake up", "can't wake him up", "I collapsed", "she collapsed", "heart stopped", "his heart stopped",
		"my heart is racing", "cardiac arrest", "can't feel my left side", "sudden weakness on one side", "weakness on one side", "weak on my left side", "sudden confusion", "can't see out of one eye",
		"my lips are turning blue", "bleeding won't stop", "the bleeding has not stopped", "the bleeding won’t stop", "blood in my stool", "bloody stool", "took all my pills", "took whole bottle of pills",
		"swallowed all the tablets", "anaphylaxis", "anaphylactic shock", "allergic reaction cant swallow", "tongue is swelling", "my lips are swelling", "my tongue is swollen", "swelling of my throat",
		"fell and hit my head", "hit my head", "broken hip", "can't talk", "vomito sangre", "vomité sangre", "me aprieta el pecho", "me arde el pecho", "no siento la mitad de la cara",
		"no siento la pierna", "debilidad en el lado izquierdo", "se me durmió el brazo", "tengo la cara dormida", "no despierta", "no se despierta", "mi esposo no reacciona", "no responde", "paro cardíaco",
		"se le paró el corazón", "labios azules", "labios morados", "tengo la lengua hinchada", "se me hincha la cara", "se me cierra la garganta", "no me entra el aire", "no puedo tragar", "no puedo mover el brazo",
		"me tomé todas las pastillas", "tomó todo el frasco", "me golpeé la cabeza", "reacción alérgica", "anafilaxia", "hemorragia", "el peor dolor de cabeza",
	},
	replies.SelfHarm: {
		"suicide", "SUICIDE", "sucide", "I feel suicidal", "suicidal thoughts", "thinking about suicide", "want to kill myself", "i will kill myself", "killing myself", "end my life",
		"I want to die", "wanna die", "I don't want to live", "dont want to live anymore", "better off dead", "end it all", "hurt myself", "harm myself", "cut myself on purpose",
		"I don't want to kill myself", "no suicide", "chest pain and I want to die", "take my own life",
		"suicidio", "quiero suicidarme", "me quiero suicidar", "me quiero matar", "quiero matarme", "quiero morir", "me quiero morir", "quiero morirme", "quitarme la vida", "no quiero vivir",
		"ya no quiero vivir", "hacerme daño", "hacerme dano", "acabar con mi vida", "no vale la pena vivir",
	},
	replies.NoEmergency: {
		"", "no chest pain today", "No chest pain", "no chest pain, feeling good", "I have no chest pain", "I don't have chest pain", "dont have any chest pain", "no more chest pain",
		"no longer chest pain", "not having chest pain", "without chest pain", "my chest does not hurt", "chest isn't hurting", "denies chest pain", "never had chest pain",
		"no trouble breathing", "no shortness of breath or chest pain", "no chest pain or shortness of breath", "no chest pain nor trouble breathing", "not an emergency", "this is not an emergency",
		"no es una emergencia", "sin dolor de pecho", "no tengo dolor de pecho", "ya no tengo dolor de pecho", "no me duele el pecho", "ningún dolor de pecho", "el pecho no me duele",
		"no tengo dificultad para respirar", "sin falta de aire", "no dolor de pecho ni falta de aire",
		"I can breathe fine", "breathing well", "puedo respirar bien", "I feel good", "me siento bien", "128/82", "my blood pressure was fine, chest x-ray next week", "presión 120/80, pecho bien",
		"chest x-ray is on monday", "emergency contact is my son", "contacto de emergencia es mi hija", "I fell asleep", "fell behind with my readings", "this cuff is killing me", "the battery died",
		"my phone is dead", "dolor de cabeza", "me duele la rodilla", "pain in my knee", "my knee hurts", "the stairs are hard", "cancel my appointment", "I cannot stop coughing",
		"the painter painted", "strike", "breath mints", "alto", "pecho de pollo", "chicken breast", "take a breath", "coughing a lot", "address is 911 Main Street", "arm cuff", "cuff on left arm",
		"I need help with my cuff", "can you help me with the app", "thanks for your help", "my daughter can help me measure", "help is not needed", "no ayuda", "necesito ayuda con el aparato", "did this help?", "I can help", "can we help", "the light is turning blue", "I'm not responding well to it",
		"the app is not responding", "my monitor won't wake up", "you are not responding to me", "nobody is responding", "not responding to texts", "la aplicación no responde", "the cuff collapsed",
		"my heart monitor stopped", "no despierto temprano", "took all my pills today", "took all my pills this morning", "I took all my meds", "tomé todas mis pastillas hoy",
		"can't swallow the big pills", "no allergic reaction", "no swelling", "my feet are swollen", "broke my cuff", "can't see the screen", "can't feel a difference", "sin hemorragia",
		"time is 9:11", "spent the day with my family", "life is good", "end of my rope with this cuff",
	},
}

func TestEmergencies(t *testing.T) {
	for want, texts := range emergencies {
		for _, text := range texts {
			if got := replies.Read(text, replies.Requested{}).Emergency; got != want {
				t.Errorf("%q is read as %q, want %q", text, got, want)
			}
		}
	}
}

// TestAbbreviationsOfBreath: SOB is shortness of breath in capitals; in small letters it is a word.
func TestAbbreviationsOfBreath(t *testing.T) {
	for text, want := range map[string]replies.Emergency{
		"SOB": replies.Danger, "having SOB since noon": replies.Danger, "very SOB today": replies.Danger, "No SOB": replies.NoEmergency, "denies SOB": replies.NoEmergency,
		"sob": replies.NoEmergency, "a sob story": replies.NoEmergency, "he is a sob": replies.NoEmergency, "I sob a lot": replies.NoEmergency,
	} {
		if got := replies.Read(text, replies.Requested{}).Emergency; got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
}

// TestLanguageOfEmergencies: the answer to a text is in its language.
func TestLanguageOfEmergencies(t *testing.T) {
	for text, want := range map[string]bool{
		"derrame cerebral": true, "infarto": true, "falta de aire": true, "convulsiones": true, "me muero": true, "ayúdame": true, "auxilio": true, "socorro": true, "vomito sangre": true,
		"no despierta": true, "no siento la cara": true, "lengua hinchada": true, "reacción alérgica": true, "sobredosis": true, "suicidarme": true, "me desmayé": true, "baja": true,
		"help me": false, "chest pain": false, "SOB": false, "no": false, "can't breathe": false, "heart attack": false, "convulsion": true, "took all my pills": false, "stop": false,
	} {
		if got := replies.IsSpanish(text); got != want {
			t.Errorf("%q: Spanish %v, want %v", text, got, want)
		}
	}
}

// TestEmergenciesInAnyDress: neither case, accents, invisible characters, emoji nor 1,600 characters around it hide an emergency.
func TestEmergenciesInAnyDress(t *testing.T) {
	accents := strings.NewReplacer("á", "a", "é", "e", "í", "i", "ó", "o", "ú", "u")
	dresses := []func(string) string{
		strings.ToUpper, accents.Replace,
		func(s string) string { return strings.Join(strings.Split(s, ""), "\u200f") },
		func(s string) string { return "\x00" + s + "\x00" },
		func(s string) string { return "😱 " + s + "🚑🚑" },
		func(s string) string { return strings.Repeat("bla ", 390) + ". " + s },
		func(s string) string { return s + ". " + strings.Repeat("bla ", 390) },
		func(s string) string { return strings.ReplaceAll(s, " ", "\n") },
		func(s string) string { return strings.ReplaceAll(s, " ", "  ") },
	}
	for want, texts := range emergencies {
		for _, text := range texts {
			for i, dress := range dresses {
				if want == replies.NoEmergency && i == 7 {
					continue // a line break ends a sentence, and with it a negation
				}
				if got := replies.Read(dress(text), replies.Requested{}).Emergency; got != want {
					t.Errorf("%q in dress %d is read as %q, want %q", text, i, got, want)
				}
			}
		}
	}
}
