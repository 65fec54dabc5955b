package questionnaires_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/questionnaires"
)

// Each of the 16 combinations of a PHQ-2 has the sum of its items, and 3 or more is positive. Source: Kroenke 2003.
func TestScoresOfPHQ2(t *testing.T) {
	q := questionnaires.Find("phq-2", "")
	values := []string{"LA6568-5", "LA6569-3", "LA6570-1", "LA6571-9"}
	positive := 0
	for interest, one := range values {
		for mood, other := range values {
			score, result := q.Evaluate(questionnaires.Answers{"44250-9": one, "44255-8": other})
			want := map[bool]string{false: "negative", true: "positive"}[interest+mood >= 3]
			if score != interest+mood || result.ID != want {
				t.Errorf("%d and %d: %d, %s", interest, mood, score, result.ID)
			}
			if result.ID == "positive" {
				positive++
			}
		}
	}
	if positive != 10 {
		t.Errorf("%d combinations are positive", positive)
	}
}

// The zone of a heart failure check is that of its worst item, in every combination.
func TestZonesOfHeartFailure(t *testing.T) {
	q := questionnaires.Find("heart-failure-zone", "")
	combinations := []questionnaires.Answers{{}}
	for _, item := range q.Items {
		longer := []questionnaires.Answers{}
		for _, begun := range combinations {
			for _, option := range item.Options {
				next := questionnaires.Answers{item.ID: option.Value}
				for id, value := range begun {
					next[id] = value
				}
				longer = append(longer, next)
			}
		}
		combinations = longer
	}
	if len(combinations) != 3*3*2*2*3*2 {
		t.Fatalf("%d combinations", len(combinations))
	}
	red := []string{"breathing:resting", "dizziness:worse", "lying-flat:upright", "chest-pain:present"}
	yellow := []string{"breathing:active", "weight:gained", "swelling:more", "lying-flat:pillows"}
	for _, answers := range combinations {
		want := "green"
		for item, value := range answers {
			switch {
			case slices.Contains(red, item+":"+value):
				want = "red"
			case slices.Contains(yellow, item+":"+value) && want != "red":
				want = "yellow"
			}
		}
		if _, result := q.Evaluate(answers); result.ID != want {
			t.Fatalf("%v: %s, want %s", map[string]string(answers), result.ID, want)
		}
	}
}

// Each text exists in both languages, codes are unique, results begin at 0 and rise, and the urgent ones name what to do.
func TestQuestionnairesAreComplete(t *testing.T) {
	for _, q := range questionnaires.All {
		texts := []questionnaires.Text{q.Title, q.Introduction}
		items := map[string]bool{}
		for _, item := range q.Items {
			if items[item.ID] || len(item.Options) < 2 {
				t.Errorf("%s: item %s", q.ID, item.ID)
			}
			items[item.ID] = true
			texts = append(texts, item.Text)
			values := map[string]bool{}
			for _, o := range item.Options {
				if values[o.Value] {
					t.Errorf("%s: value %s of %s is there twice", q.ID, o.Value, item.ID)
				}
				values[o.Value] = true
				texts = append(texts, o.Text)
			}
		}
		for i, r := range q.Results {
			texts = append(texts, r.Advice)
			if (i == 0) != (r.From == 0) || i > 0 && r.From <= q.Results[i-1].From || (r.Effect == "none") != (r.Finding == "") ||
				!slices.Contains([]string{"none", "notify", "escalate"}, r.Effect) {
				t.Errorf("%s: result %s", q.ID, r.ID)
			}
			if r.Effect == "escalate" && (!strings.Contains(r.Advice.English, "911") || !strings.Contains(r.Advice.Spanish, "911")) {
				t.Errorf("%s: %s does not name 911", q.ID, r.ID)
			}
		}
		for _, text := range texts {
			if text.English == "" || text.Spanish == "" || text.English == text.Spanish && text.English != "No" {
				t.Errorf("%s: %+v", q.ID, text)
			}
		}
		if q.Source == "" || q.Version == "" || len(q.Results) < 2 {
			t.Errorf("%s is incomplete", q.ID)
		}
	}
	if questionnaires.Find("phq-9", "") != nil || questionnaires.Find("phq-2", "1999-01-01") != nil {
		t.Error("an unknown questionnaire is found")
	}
}

func TestAnswersDoNotPrint(t *testing.T) {
	answers := questionnaires.Answers{"44250-9": "LA6571-9"}
	for _, form := range []string{"%v", "%+v", "%s", "%#v"} {
		if text := fmt.Sprintf(form, answers); strings.Contains(text, "LA6571") {
			t.Errorf("%s prints %s", form, text)
		}
	}
}
