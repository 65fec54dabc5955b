package templates_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var now = time.Date(2026, time.January, 15, 13, 45, 0, 0, time.UTC)

// The templates as shipped, by number.
const (
	none, adult, heartFailure, copd, pregnancy, diabetes, gestational = 0, 1, 2, 3, 4, 5, 6
)

func execute(t *testing.T, app core.App, statement string, params dbx.Params) {
	t.Helper()
	if _, err := app.DB().NewQuery(statement).Bind(params).Execute(); err != nil {
		t.Fatal(err)
	}
}

// The shipped template proposed for each diagnosis and age. Codes are stored in order of importance.
func TestProposedFromShippedTemplates(t *testing.T) {
	app := vigiltest.NewApp(t)
	aged := func(age int, codes ...string) templates.Candidate {
		return templates.Candidate{Codes: codes, Age: age, AgeKnown: true}
	}
	tests := []struct {
		name  string
		who   templates.Candidate
		minor bool
		given []int
		want  int64
	}{
		{"no diagnosis, an adult", aged(70), false, nil, none},
		{"no diagnosis, of age today", aged(18), false, nil, none},
		{"hypertension", aged(70, "I10"), false, nil, none},
		{"heart failure", aged(70, "I50.9"), false, nil, heartFailure},
		{"heart failure, the category alone", aged(70, "I50"), false, nil, heartFailure},
		{"hypertensive heart disease with failure", aged(70, "I11.0"), false, nil, heartFailure},
		{"hypertensive heart disease without", aged(70, "I11.9"), false, nil, none},
		{"heart and kidney with failure", aged(70, "I13.2"), false, nil, heartFailure},
		{"heart and kidney without", aged(70, "I13.1"), false, nil, none},
		{"COPD", aged(60, "J44.1"), false, nil, copd},
		{"asthma", aged(60, "J45.909"), false, nil, none},
		{"diabetes type 2", aged(60, "E11.65"), false, nil, diabetes},
		{"diabetes type 1", aged(60, "E10.9"), false, nil, diabetes},
		{"other diabetes", aged(60, "E13.9"), false, nil, diabetes},
		{"no such diabetes", aged(60, "E12.9"), false, nil, none},
		{"gestational hypertension", aged(31, "O13.3"), false, nil, pregnancy},
		{"pregnant", aged(31, "Z33.1"), false, nil, pregnancy},
		{"pregnant, to be ended", aged(31, "Z33.2"), false, nil, none},
		{"weeks of gestation", aged(31, "Z3A.20"), false, nil, pregnancy},
		{"gestational diabetes", aged(31, "O24.410"), false, nil, gestational},

		{"the first that has one: heart failure", aged(70, "I10", "I50.9", "J44.1"), false, nil, heartFailure},
		{"the first that has one: COPD", aged(70, "J44.1", "I50.9"), false, nil, copd},
		{"the second, once the first was given", aged(70, "J44.1", "I50.9"), false, []int{copd}, heartFailure},
		{"none, once both were given", aged(70, "J44.1", "I50.9"), false, []int{copd, heartFailure}, none},
		{"another was given", aged(70, "J44.1"), false, []int{adult, heartFailure}, copd},
		{"pregnancy before its diabetes", aged(31, "Z34.02", "O24.410"), false, nil, pregnancy},

		{"17, heart failure", aged(17, "I50.9"), true, nil, none},
		{"18, heart failure", aged(18, "I50.9"), false, nil, heartFailure},
		{"7, COPD and diabetes", aged(7, "J44.9", "E10.9"), true, nil, diabetes},
		{"16, pregnant", aged(16, "O13.3"), true, nil, pregnancy},
		{"a minor without a diagnosis", aged(7), true, nil, none},
		{"age not known, heart failure", templates.Candidate{Codes: []string{"I50.9"}}, false, nil, none},
		{"age not known, diabetes", templates.Candidate{Codes: []string{"E11.9"}}, false, nil, diabetes},
	}
	var all []templates.Candidate
	for i := range tests {
		test := &tests[i]
		test.who.PatientID = fmt.Sprintf("0194c5a8-0000-7000-8000-%012d", i)
		all = append(all, test.who)
		if err := triage.AddRow(app, test.who.PatientID, now); err != nil {
			t.Fatal(err)
		}
		group := "adult"
		if test.minor {
			group = "minor"
		}
		execute(t, app, "UPDATE triage_scores SET age_group = {:group} WHERE patient = {:patient}", dbx.Params{"group": group, "patient": test.who.PatientID})
		var given []collections.AppliedTemplate
		for _, number := range test.given {
			given = append(given, collections.AppliedTemplate{ID: int64(number), Version: 1})
		}
		execute(t, app, "INSERT INTO thresholds (patient, bounds) VALUES ({:patient}, '{}')", dbx.Params{"patient": test.who.PatientID})
		if err := collections.StoreAppliedTemplates(app, test.who.PatientID, given); err != nil {
			t.Fatal(err)
		}
	}
	needs, err := templates.NeedsOf(app, all) // a page at once
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		if got := needs[test.who.PatientID].Proposed; got != test.want {
			t.Errorf("%s: template %d is proposed, want %d", test.name, got, test.want)
		}
	}
}

// A practice's own templates: the most specific code first, then the oldest; by age alone only for minors, within the range.
func TestProposedFromOwnTemplates(t *testing.T) {
	app := vigiltest.NewApp(t)
	number := map[string]int64{}
	for _, body := range []string{
		`{"key":"right_heart","name":"Right heart failure","diagnoses":["I50.81"],"min_age":40,"max_age":60,"thresholds":{"weight":{"change_threshold_kg":1}}}`,
		`{"key":"heart_again","name":"Heart failure again","diagnoses":["I50"],"thresholds":{"weight":{"change_threshold_kg":1}}}`,
		`{"key":"infants","name":"Infants","max_age":1,"thresholds":{"pulse":{"high":160}}}`,
		`{"key":"schoolchildren","name":"Schoolchildren","min_age":6,"max_age":12,"thresholds":{"pulse":{"high":130}}}`,
		`{"key":"children","name":"Children","min_age":2,"max_age":17,"thresholds":{"pulse":{"high":140}}}`,
		`{"key":"anybody","name":"Anybody","thresholds":{"pulse":{"high":140}}}`,
	} {
		made, err := create(t, app, body)
		if err != nil {
			t.Fatal(err)
		}
		number[made.Key()] = made.Number()
	}
	for i, test := range []struct {
		age   int
		minor bool
		code  string
		want  string // "" for none, shipped for that of heart failure
	}{
		{50, false, "I50.813", "right_heart"},
		{40, false, "I50.81", "right_heart"},
		{60, false, "I50.81", "right_heart"},
		{39, false, "I50.81", "shipped"},
		{61, false, "I50.81", "shipped"},
		{50, false, "I50.9", "shipped"},
		{17, true, "I50.9", "heart_again"}, // the shipped one is for adults
		{0, true, "", "infants"},
		{1, true, "", "infants"},
		{2, true, "", "children"},
		{6, true, "", "schoolchildren"},
		{12, true, "", "schoolchildren"},
		{13, true, "R00.0", "children"},
		{18, false, "", ""},
		{10, false, "", ""}, // not counted as a minor where the patient lives
	} {
		patient := fmt.Sprintf("0194c5a8-0000-7000-8000-%012d", i)
		if err := triage.AddRow(app, patient, now); err != nil {
			t.Fatal(err)
		}
		if test.minor {
			execute(t, app, "UPDATE triage_scores SET age_group = 'minor', needs_thresholds = TRUE WHERE patient = {:patient}", dbx.Params{"patient": patient})
		}
		c := templates.Candidate{PatientID: patient, Age: test.age, AgeKnown: true}
		if test.code != "" {
			c.Codes = []string{test.code}
		}
		needs, err := templates.NeedsOf(app, []templates.Candidate{c})
		if err != nil {
			t.Fatal(err)
		}
		want := number[test.want]
		if test.want == "shipped" {
			want = heartFailure
		}
		if got := needs[patient]; got.Proposed != want || got.Thresholds != test.minor {
			t.Errorf("%d years, %q: %+v, want template %d", test.age, test.code, got, want)
		}
	}
}
