package phi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const generic = "You have a new notification."

var people = []KnownPatient{
	{First: "John", Last: "Smith", Identifiers: []string{"MRN-4711", "ext/99", "42 Elm Street"}},
	{First: "José", Last: "O'Brien"},
}

func TestSanitize(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"John Smith has BP 185/120 mmHg", "a patient has abnormal blood pressure"},
		{"smith, john SpO₂ 86%", "a patient low oxygen saturation"},
		{"SMITH's heart rate is 142 bpm", "a patient's abnormal heart rate"},
		{"Mr. Smith, MRN 00012345, DOB: Jan 2, 1950, BP is 188/121 mm[Hg]; call 555-123-4567", "a patient, abnormal blood pressure; call"},
		{"Mr. Smith glucose 310 mg/dL, temp 103.2 °F", "a patient abnormal glucose level, abnormal temperature"},
		{"Jose O’Brien blood sugar 16.7 mmol/L", "a patient abnormal glucose level"},
		{"ssn 123–45–6789", generic},
		{"１２３-４５-６７８９ leaked", "leaked"},
		{"1\u200b23-45-6789 leaked", "leaked"},
		{"SSN: 123456789 on file", "on file"},
		{"Patient MRN-00012345 missed a reading", "Patient missed a reading"},
		{"1950-01-02 (DOB) follow-up due 2026-01-15", "follow-up due 2026-01-15"},
		{"Call +1 555.123.4567 ext 22 now", "Call now"},
		{"BP 120/80, HR 70", "abnormal blood pressure, abnormal heart rate"},
		{"103℉ reading", "abnormal temperature reading"},
		{"mRNA vaccine reminder", "mRNA vaccine reminder"},
		{"Device battery 8%", "Device battery 8%"},
		{"Smithson is on call", "Smithson is on call"},
		{"Follow up 2026-01-15 at 10:30", "Follow up 2026-01-15 at 10:30"},

		// Names.
		{"J. Smith, John P. Smith and Dr Smith", "a patient, a patient and a patient"},
		{"jo\u0301hn smith", "a patient"},
		{"José", "a patient"},
		{"the patient of 42 ELM street, mrn-4711", "the patient of"},
		{"John Smithson", "a patient Smithson"},
		// Evasions.
		{"call ٥٥٥-١٢٣-٤٥٦٧ please", "call please"},
		{"S\u00admith called", "a patient called"},
		{"Ｊｏｈｎ Ｓｍｉｔｈ", "a patient"},
		{"103ºF and 39˚C", "abnormal temperature and abnormal temperature"},
		{"123\u221245\u20106789", generic},
		{"12\xff3-45-6789", "12 3-45-6789"},
		{"write to a.b+c@mail.example.org", "write to"},
		{"medical record no. A-77 (MRN 12) kept", "kept"},
		{"born on 2.1.1950 in May", "in May"},
		{"weight 81.5 kg, 96 % oxygen", "abnormal weight, low oxygen saturation"},
		{"+4915112345678 or 5551234567 or 555-1234", "or or"},
		{"", generic},
		{"  , ;", generic},
		{generic, generic},
	} {
		if got := Sanitize(c.text, generic, people...); got != c.want {
			t.Errorf("%q is sanitized to %q, want %q", c.text, got, c.want)
		}
	}
}

func TestSanitizeYours(t *testing.T) {
	known := KnownPatient{First: "Ada", Last: "Lovelace", IsInRecipientsCare: true}
	if got := Sanitize("Lovelace, Ada is back", generic, known, people[0]); got != "your patient is back" {
		t.Errorf("got %q", got)
	}
	// A patient with a name that is a word of the replacement gets the generic text.
	if got := Sanitize("Ada Patient is back", generic, KnownPatient{First: "Ada", Last: "Patient"}); got != generic {
		t.Errorf("got %q", got)
	}
	raw, err := json.Marshal(known)
	if shown := fmt.Sprintf("%v %+v %s", known, &known, raw); strings.Contains(shown, "Lovelace") || err == nil {
		t.Errorf("printed: %s", shown)
	}
}

// Skipping the search of texts without the needed substrings never changes the result.
func TestSanitizeNeeds(t *testing.T) {
	pieces := []string{
		"Ada", "ada-mae", "Mae", "O'Hara", "Lovelace,", "A.", "Mrs.", "MRN", "mrn", "a", "x-7", "born", "may", "3", "1950", "12/31/1950", "ssn", "123-45-6789", "bp", "185/120",
		"mmHg", "kg", "@", "ada@mail.test", "555-0100", "+4912345678", "1 Main St", "main", "alert", "for", "your patient", "\u00e9", "stra\u00dfe", "\uff11", "%", "(", ")", ",",
	}
	rapid.Check(t, func(t *rapid.T) {
		known := []KnownPatient{
			{First: rapid.SampledFrom(pieces).Draw(t, "first"), Last: "Lovelace", Identifiers: []string{"X-7", "1 Main St", "ada@mail.test"}},
			{First: "Ada-Mae", Last: rapid.SampledFrom(pieces).Draw(t, "last"), IsInRecipientsCare: rapid.Bool().Draw(t, "yours")},
		}
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "text"), " ")
		clean, found := newSanitizer(known).pass(text)
		searching := func(skipping []*pattern) (all []*pattern) {
			for _, p := range skipping {
				every := *p
				every.needs = []string{""}
				all = append(all, &every)
			}
			return all
		}
		defer func(skipping []*pattern) { patterns = skipping }(patterns)
		patterns = searching(patterns)
		s := sanitizer{known: searching(patientPatterns(known))}
		if want, there := s.pass(text); clean != want || found != there {
			t.Fatalf("%q is sanitized to %q (%v), want %q (%v)", text, clean, found, want, there)
		}
	})
}

// The work is linear in the text: no expression backtracks, so twice the text is at most about twice the work.
func TestSanitizeWork(t *testing.T) {
	for _, unit := range []string{"1", "born ", "mrn ", "mrn-", "john ", "555-", "bp 1", "a@", "(", "1 mm", "01-01-19", "j. ", "+1", "mr ", "weight "} {
		work := func(length int) int {
			s := newSanitizer(people)
			s.pass(strings.Repeat(unit, length/len(unit)))
			return s.searched
		}
		half, whole := work(maxTextLength/2), work(maxTextLength)
		if whole > 3*half || whole > 40*(len(patterns)+3)*maxTextLength {
			t.Errorf("%q: %d bytes searched for %d characters, %d for twice as many", unit, half, maxTextLength/2, whole)
		}
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add("John Smith has BP 185/120 mmHg", "John", "Smith", "MRN-1")
	f.Add("1\u200b23-45-6789 leaked", "Ada", "", "1")
	f.Add("a patient's straße", "s", "A", "ss")
	f.Add("((([{}])))x,;,; - .", "(", ".", ")")
	f.Add("１０３℉ İstanbul", "i", "Mr", "\u0307")
	f.Fuzz(func(t *testing.T, text, first, last, identifier string) {
		if len(text)+len(first)+len(last)+len(identifier) > 5000 {
			return
		}
		known := KnownPatient{First: first, Last: last, Identifiers: []string{identifier}}
		once := Sanitize(text, generic, known)
		if twice := Sanitize(once, generic, known); twice != once {
			t.Errorf("%q is sanitized to %q, and that %q", text, once, twice)
		}
		if once == generic {
			return
		}
		folded := " " + foldWhole(once) + " "
		if id := foldWhole(identifier); id != "" && strings.Contains(folded, id) {
			t.Errorf("%q keeps the identifier %q: %q", text, identifier, once)
		}
		for _, name := range []string{first, last} {
			if name = foldWhole(name); name != "" && strings.Contains(folded, " "+name+" ") {
				t.Errorf("%q keeps the name %q: %q", text, name, once)
			}
		}
	})
}

func BenchmarkSanitize(b *testing.B) {
	for name, text := range map[string]string{"of digits": strings.Repeat("1", maxTextLength), "of an alert": "A patient has a new alert. Open the app to see it."} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Sanitize(text, generic, people...)
			}
		})
	}
}
