package notifications

import (
	"github.com/pocketbase/pocketbase/core"
	"golang.org/x/text/language"

	"github.com/vigilhealth/vigil/collections"
)

// Languages of texts to patients and caregivers; staff get English.
const (
	English = "en"
	Spanish = "es"
)

// Language returns the language of texts for a preferred one; English if there is no translation.
func Language(preferred string) string {
	if base, _ := language.Make(preferred).Base(); base.String() == Spanish {
		return Spanish
	}
	return English
}

// languagesOf returns the languages by account; a caregiver has that of the longest-helped patient.
func languagesOf(app core.App, userIDs []string) (map[string]string, error) {
	languages, err := collections.PreferredLanguagesOf(app, userIDs)
	for id, preferred := range languages {
		languages[id] = Language(preferred)
	}
	return languages, err
}

// pushWords returns the title and the body of a push in a language.
func pushWords(entry collections.UnplannedNotification, in string) (title, body string) {
	if words := types[entry.Type].spanish; words[0] != "" && in == Spanish {
		return words[0], words[1]
	}
	return pushTitle(entry), pushText(entry.Channel, entry.Type)
}
