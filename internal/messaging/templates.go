package messaging

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/vigilhealth/vigil/internal/notifications"
)

// Template names a text to a patient.
type Template string

// Templates of messages that the service or staff send.
const (
	MissedReading Template = "missed_reading"
	TakeAgain     Template = "take_again"
	BatteryLow    Template = "battery_low"
	DeviceShipped Template = "device_shipped"
	Question      Template = "question"
	FreeText      Template = "free_text" // written by staff
)

// StaffTemplates are the templates that staff may send.
var StaffTemplates = []string{
	string(MissedReading), string(TakeAgain), string(BatteryLow), string(DeviceShipped), string(Question), string(FreeText),
}

// Languages of the templates.
const (
	English = notifications.English
	Spanish = notifications.Spanish
)

// MaxLength bounds a text, the practice's name and the way to stop included. Source: GSM 03.38, one text message of the 7-bit alphabet.
const MaxLength = 160

// maxPractice bounds the practice's name within a text.
const maxPractice = 40

// texts are the templates. Each has the practice's name, what to do and how to stop, but no value,
// diagnosis or other name, and not what is measured. The 7-bit alphabet of text messages has ñ and
// é, but not á, í, ó and ú.
var texts = map[Template]map[string]string{
	MissedReading: {
		English: "{practice}: We have no reading from you today. Please take one when you can. {stop}",
		Spanish: "{practice}: Hoy no recibimos su lectura. Por favor, haga una cuando pueda. {stop}",
	},
	TakeAgain: {
		English: "{practice}: Please sit and rest for 5 minutes, then take your reading again. {stop}",
		Spanish: "{practice}: Por favor, descanse sentado 5 minutos y repita su lectura. {stop}",
	},
	BatteryLow: {
		English: "{practice}: Please charge your device or change its batteries. {stop}",
		Spanish: "{practice}: Por favor, cargue su equipo o cambie las pilas. {stop}",
	},
	DeviceShipped: {
		English: "{practice}: Your device is on its way. Call us if it is not there in a week. {stop}",
		Spanish: "{practice}: Su equipo va en camino. Llame si no llega en una semana. {stop}",
	},
	Question: {
		English: "{practice}: We have a question for you. Please call us. {stop}",
		Spanish: "{practice}: Tenemos una pregunta para usted. Por favor, llame. {stop}",
	},
	FreeText: {
		English: "{practice}: {text}\n{stop}",
		Spanish: "{practice}: {text}\n{stop}",
	},
}

// stops explain how to stop. Source: CTIA, Messaging Principles and Best Practices (2023), 5.1.3.
var stops = map[string]string{English: "Reply STOP to stop.", Spanish: "Responda STOP para no recibir otros."}

// Fill returns the text of a message. text is what staff wrote, for [FreeText].
func (t Template) Fill(lang, practice, text string) string {
	form, ok := texts[t][lang]
	if !ok {
		form = texts[t][English]
		lang = English
	}
	return strings.NewReplacer("{practice}", shortName(practice), "{text}", strings.TrimSpace(text), "{stop}", stops[lang]).Replace(form)
}

// MaxFreeText returns how many characters staff may write in a [FreeText].
func MaxFreeText(lang, practice string) int {
	return MaxLength - len([]rune(FreeText.Fill(lang, practice, "")))
}

// shortName returns the practice's name in the 7-bit alphabet, up to [maxPractice] characters, whole words.
func shortName(name string) string {
	var plain strings.Builder
	for _, r := range norm.NFC.String(name) {
		if inGSM(r) {
			plain.WriteRune(r)
			continue
		}
		if base := []rune(norm.NFD.String(string(r))); inGSM(base[0]) {
			plain.WriteRune(base[0])
		}
	}
	words := strings.Fields(plain.String())
	short := ""
	for _, word := range words {
		longer := strings.TrimSpace(short + " " + word)
		if len([]rune(longer)) > maxPractice {
			break
		}
		short = longer
	}
	if short == "" {
		return "Your care team"
	}
	return short
}

// gsm is the basic 7-bit alphabet of text messages. Source: 3GPP TS 23.038, 6.2.1.
const gsm = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"

func inGSM(r rune) bool { return strings.ContainsRune(gsm, r) }
