package messaging

import (
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/phi"
)

var knownPeople = []phi.KnownPatient{{First: "Ada", Last: "Lovelace", Identifiers: []string{"MRN-ABC"}}, {First: "José", Last: "Núñez"}}

// Texts that staff write every day are accepted.
func TestTextsWithoutPrivateContent(t *testing.T) {
	for _, text := range []string{
		"Please call us when you can.",
		"Please call us today before 5 pm.",
		"We will call you tomorrow at 10:30 am. Please keep your phone near.",
		"Your visit on Monday, May 4 is at 9:15. Please be there 15 minutes early.",
		"Please rest for 5 minutes and take 2 readings.",
		"Your new device arrives in 3 days. Thank you!",
		"If it is an emergency, call 911.",
		"Please charge your device. The battery is low.",
		"Can you take your reading in the morning, please?",
		"Wear the cuff on your left arm. OK?",
		"I'm sorry I missed you. Can we talk at noon?",
		"Por favor, llame cuando pueda.",
		"Mañana a las 10:30 le llamamos. Gracias.",
		"Su visita es el 15 de mayo a las 9:00.",
		"Descanse 5 minutos y repita su lectura, por favor.",
		"¿Puede llamar hoy antes de las 5 pm?",
		"El lunes es feriado. Estamos el martes.",
		"Cargue su equipo; las pilas se gastaron.",
		"Hable con nosotros en su idioma. Gracias",
		"Please bring your device in April, and call us.",
		"Call us at 518-555-0100 or (518) 555-0100 before 5 pm.", "Llámenos al 1-800-555-2000, por favor.", "Please call 518.555.0100 at 9.",
		"Your visit is on Friday the 4th at 10.", "Su visita es el lunes 15 a las 9.", "See you on the 21st.", "Rest for twenty minutes, then take two readings.",
		"Descanse de cinco a diez minutos.", "Please wait 5-10 minutes.", "It arrives in 10 days.", "Llame en 24 horas.", "Please take one when you can.", "Call once it arrives.",
		"Good morning! Please do not worry; the signal is low there.", "Buenos días. Las pilas están bajas.", "Buenas tardes, ¿puede llamar en media hora?", "Have a good day.",
		"Mil gracias. Le esperamos el jueves.", "The office is closed today. We answer tomorrow.", "Is this still your phone?", "Will you be at home on Tuesday?", "The doctor will call you at noon.",
		"La enfermera le llama a las 3.", "Please step on the scale in the morning.", "Please sign the form at your next visit.", "Traiga su equipo a la visita.", "Ask for the nurse when you call.",
		"Your visit is on Dec 3.", "Your visit is on Tue, Jan 12 at 9:15.", "Your visit is on Wed 3.", "See you Fri Sept 4.", "Su visita es el 3 de Dic a las 9:00.",
		"Your new cuff is here. You may pick it up.", "Gracias por su mensaje. Le llamamos mañana.",
	} {
		for _, practice := range []string{"Hill Clinic", "", " ", "is"} {
			if kinds := PrivateContent(text, practice, knownPeople...); kinds != nil {
				t.Errorf("practice %q: %v in %q", practice, kinds, text)
			}
		}
	}
}

// Each kind of private content is refused, in both languages, however it is written.
func TestPrivateContent(t *testing.T) {
	for kind, texts := range map[string][]string{
		PrivateNumber: {
			"Your last one was 185/120.", "You had 142 this morning.", "Was it 98.6?", "185 over 120", "Take 2 mg", "take 10 mg", "take two tablets", "media pastilla", "half a pill", "SpO2 86%",
			"1８5 again", "١٨٥ again", "one hundred eighty five", "It was ninety over sixty", "eighty-five percent", "Call 185-120-0123", "the code is 12", "ssn 123-45-6789",
			"born on 1/2/1950", "May 4, 1950", "since 1950", "dob 01/02/50", "5 units", "8 pills", "MRN 12", "Room 204", "12,5", "0.5", "3/4",
			"Su presión fue 185/120", "ciento ochenta", "noventa sobre sesenta", "ochenta y cinco por ciento", "Tome 2 pastillas", "4 de mayo de 1950", "5 unidades",
			"It was one eighty", "uno ochenta", "one twenty two", "fue uno cuarenta", "dieciocho con doce", "eighteen over twelve", "1 8 5", "1, 8, 5", "1-8-5", "9 1 1", "1O5",
			"in the nineties", "noventa y dos", "dos cientos", "8 , 5", "nine point five", "nueve punto cinco", "one o five", "treinta y ocho y medio", "80 times a minute", "DM2", "at one thirty",
		},
		PrivateDiagnosis: {
			"About your hypertension", "your DIABETES", "after your heart failure visit", "COPD clinic", "for your AFib", "Kidney visit", "your pregnancy",
			"I10 follow-up", "for E11.9", "your hypoglycemia", "depression questionnaire", "the HIV test", "your arthritis", "Diagnosed last week",
			"Sobre su hipertensión", "su diabetes", "insuficiencia cardíaca", "su embarazo", "la diálisis", "su presi\u00adon por hiper\u200btension", "depresión", "EPOC", "el cáncer",
			"HTN check", "your kidneys", "the cardiologist", "con la oncóloga", "your heart monitor", "su marcapasos", "after your surgery", "la biopsia", "a blood test", "su análisis de sangre",
			"your swelling", "los mareos", "chest pain", "su dolor", "falta de aire", "since you fell", "la gripe", "the psychiatrist", "su higado", "T2D class",
		},
		PrivateMedicine: {
			"Take your lisinopril.", "your Metoprolol", "more insulin", "the ATORVASTATIN", "your lasix", "amlodipine please", "ozempic", "aspirin",
			"Tome su metformina", "su losartán", "la insulina", "furosemida", "enalapril", "aspirina", "levotiroxina",
			"your blood thinner", "the water pill", "un diurético", "su inhalador", "antibiotics", "HCTZ", "Humira", "Lantus today", "verapamil", "glipizida", "nitroglicerina", "torsemide", "prednisone", "el losartán",
		},
		PrivateMeasure: {
			"Take your blood pressure today.", "your BP", "B.P. please", "Mida su presión arterial.", "check your sugar", "su azúcar", "Weight, please", "su peso", "the oxygen", "glucosa", "your A1c",
		},
		PrivateResult: {
			"Your blood pressure is too high.", "Your sugar was low again", "a high reading", "critical oxygen level", "Your weight is rising", "abnormal results",
			"Su presión está alta", "su azúcar salió muy baja", "lectura anormal", "el oxígeno está bajo", "resultados peligrosos",
			"It is high again.", "That was too high.", "Está muy alta.", "Salió alta", "demasiado alto", "It went up", "subió mucho", "above your target", "por encima de su meta", "fuera de rango", "out of range",
			"We are worried about it.", "Nos preocupa", "worse than before", "not a good reading", "presión alta",
		},
		PrivateName: {
			"Ada, please call us.", "ADA please call", "please tell lovelace", "Your nurse Maria will call.", "Ask for Dr. Smith", "call Bob today", "dr Jones called", "mrs Jones is here",
			"José, llame por favor", "jose, llame", "La enfermera Carmen le llama", "pregunte por la Dra. Ruiz", "llame a Carmen hoy", "el señor Nuñez",
			"ask for maria", "Carmen le llama", "Maria will call you.", "hola juan", "this is sam", "MARIA will call", "dr. smith", "mrs jones", "A.d.a. call", "A d a", "ada_lovelace", "thanks, joe", "maria's call",
		},
		PrivateIdentifier: {"write to nurse@hill.example", "escriba a x@y.mx"},
		PrivateLink:       {"see https://hill.example/portal", "go to www.hill.example", "hill.com/x", "vea clinica.org", "hill dot com", "goo.gl/abc", "mychart.page/x", "clinic.mx"},
	} {
		for _, text := range texts {
			for _, practice := range []string{"Hill Clinic", "", " ", "A", "ab", "is"} {
				if kinds := PrivateContent(text, practice, knownPeople...); !slices.Contains(kinds, kind) {
					t.Errorf("practice %q: %q has %v, want %s", practice, text, kinds, kind)
				}
			}
		}
		if hint := PrivateHint([]string{kind}); strings.HasSuffix(hint, ": .") {
			t.Errorf("%s has no hint", kind)
		}
	}
}

// The practice's own name is allowed, though it has a number, a capital letter or a disease.
func TestPracticeNameIsNotPrivate(t *testing.T) {
	for _, name := range []string{"Hill Clinic", "5th Avenue Diabetes Center", "Dr. Smith & Sons", "Clínica San José 24"} {
		if kinds := PrivateContent("Please call "+name+" today.", name); kinds != nil {
			t.Errorf("%s: %v", name, kinds)
		}
	}
}

func FuzzPrivateContent(f *testing.F) {
	f.Add("Your pressure was 185/120, Ada")
	f.Fuzz(func(t *testing.T, text string) {
		// A number of three figures that is not 911 is never sent.
		if kinds := PrivateContent("We saw "+"187"+" "+text, "Hill Clinic", knownPeople...); !slices.Contains(kinds, PrivateNumber) && !strings.ContainsAny(text, ":-/.,0123456789") && len(text) < 100 {
			t.Errorf("%q passes", text)
		}
	})
}
