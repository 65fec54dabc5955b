// Package questionnaires holds the questionnaires for patients as dated data, assigns them, stores answers and acts on what these show. The rules
// are in questionnaires.json, with their sources; a changed wording or rule is a new version there, and earlier ones stay for stored answers.
// Rules: docs/decisions/questionnaires.md.
package questionnaires

import (
	_ "embed"
	"encoding/json"
	"slices"
)

// Text is a text in the languages of the portal.
type Text struct {
	English string `json:"en"`
	Spanish string `json:"es"`
}

// Coding is a code of a system.
type Coding struct {
	System  string `json:"system"` // URL or URN
	Code    string `json:"code"`
	Display string `json:"display"`
}

// Option is a possible answer to an item.
type Option struct {
	Value string `json:"value"`
	Score int    `json:"score"`
	Text  Text   `json:"text"`
}

// Item is a question. It takes exactly one of its options.
type Item struct {
	ID      string   `json:"id"`
	System  string   `json:"system"` // of the codes of the item and its options; "" for codes of Vigil
	Text    Text     `json:"text"`
	Options []Option `json:"options"`
}

// Effects of a result.
const (
	effectNone     = "none"
	effectNotify   = "notify"   // the care team
	effectEscalate = "escalate" // an urgent escalation
)

// Result is what answers show.
type Result struct {
	ID      string `json:"id"`
	From    int    `json:"from"` // the least score with this result
	Effect  string `json:"effect"`
	Finding string `json:"finding"` // for staff; "" without an effect
	Advice  Text   `json:"advice"`  // for the patient
}

// Questionnaire is one version of a questionnaire.
type Questionnaire struct {
	ID      string  `json:"id"`
	Version string  `json:"version"` // the date from which it is used, YYYY-MM-DD
	Code    Coding  `json:"code"`
	Total   *Coding `json:"total"` // of the score; nil for a score that is only an order of results
	// Scoring is sum, or worst for the highest score of an item.
	Scoring      string   `json:"scoring"`
	Source       string   `json:"source"`
	Copyright    string   `json:"copyright"`
	Title        Text     `json:"title"`
	Introduction Text     `json:"introduction"`
	Items        []Item   `json:"items"`
	Results      []Result `json:"results"` // by score
}

//go:embed questionnaires.json
var embedded []byte

// All are the questionnaires with all versions; of one questionnaire, the latest is last.
var All = func() (all []*Questionnaire) {
	if err := json.Unmarshal(embedded, &all); err != nil {
		panic("questionnaires.json: " + err.Error())
	}
	return all
}()

// IDs lists the questionnaires.
var IDs = func() (ids []string) {
	for _, q := range All {
		if !slices.Contains(ids, q.ID) {
			ids = append(ids, q.ID)
		}
	}
	return ids
}()

// Find returns a version of a questionnaire, the latest for "". It returns nil for an unknown one.
func Find(id, version string) (found *Questionnaire) {
	for _, q := range All {
		if q.ID == id && (version == "" || q.Version == version) {
			found = q
		}
	}
	return found
}

// Answers are the chosen values by item. They are health information and refuse to print.
type Answers map[string]string

// option returns the chosen option of an item, or nil.
func (i Item) option(value string) *Option {
	if at := slices.IndexFunc(i.Options, func(o Option) bool { return o.Value == value }); at >= 0 {
		return &i.Options[at]
	}
	return nil
}

// Evaluate returns the score of complete answers and what they show.
func (q *Questionnaire) Evaluate(answers Answers) (score int, result Result) {
	for _, item := range q.Items {
		chosen := item.option(answers[item.ID])
		switch {
		case chosen == nil:
		case q.Scoring == "sum":
			score += chosen.Score
		default:
			score = max(score, chosen.Score)
		}
	}
	for _, r := range q.Results {
		if score >= r.From {
			result = r
		}
	}
	return score, result
}
