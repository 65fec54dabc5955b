package messaging

import (
	"strings"
	"testing"
)

// Each answer fits one text message in both languages with the longest name of a practice; that to an emergency names 911.
func TestAnswersFitOneMessage(t *testing.T) {
	for template := range answers {
		for _, lang := range []string{English, Spanish} {
			text := template.Fill(lang, strings.Repeat("Seven77 ", 5), "")
			if n := len([]rune(text)); n > MaxLength || segments(text) != 1 {
				t.Errorf("%s %s: %d characters, %d segments: %s", template, lang, n, segments(text), text)
			}
			if isEmergency := template == AnswerEmergency || template == AnswerSelfHarm; isEmergency && !strings.Contains(text, "911") {
				t.Errorf("%s %s does not name 911: %s", template, lang, text)
			}
		}
		if !template.IsAnswer() || template.Fill(English, "x", "") == template.Fill(Spanish, "x", "") {
			t.Errorf("%s is not translated", template)
		}
	}
	if MissedReading.IsAnswer() {
		t.Error("a reminder is no answer")
	}
}
