package icd10_test

import (
	"bytes"
	"compress/gzip"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/icd10"
)

func all(t testing.TB) *icd10.Set {
	t.Helper()
	set, err := icd10.All()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// The counts match CMS and CDC publications for FY 2026: 487 new and 28 deleted codes, from 74,260 in FY 2025.
func TestTheWholeSet(t *testing.T) {
	set := all(t)
	hits, total := set.Search(icd10.Query{Words: "A", Limit: 1})
	if total == 0 || !hits[0].Billable {
		t.Fatalf("%d codes begin with A, first %+v", total, hits)
	}
	billable := 0
	for _, c := range set.Codes() {
		entry, found := set.Find(c)
		if !found || entry.Code != c || entry.Description == "" {
			t.Fatalf("%s is read back as %+v, %t", c, entry, found)
		}
		if entry.Billable {
			billable++
		}
	}
	if billable != 74_260+487-28 || set.Len() != 98_186 {
		t.Errorf("%d billable codes of %d", billable, set.Len())
	}
}

func TestFind(t *testing.T) {
	set := all(t)
	for code, want := range map[string]icd10.Entry{
		"I10":      {Code: "I10", Description: "Essential (primary) hypertension", Billable: true},
		"i50.9":    {Code: "I50.9", Description: "Heart failure, unspecified", Billable: true},
		"I509":     {Code: "I50.9", Description: "Heart failure, unspecified", Billable: true},
		"I50":      {Code: "I50", Description: "Heart failure"},
		"E11.A":    {Code: "E11.A", Description: "Type 2 diabetes mellitus without complications in remission", Billable: true},
		"S06.357A": {Code: "S06.357A", Description: "Traumatic hemorrhage of left cerebrum with loss of consciousness of any duration with death due to brain injury prior to regaining consciousness, initial encounter", Billable: true},
		"T78.07":   {Code: "T78.07", Description: "Anaphylactic reaction due to milk and dairy products"},
	} {
		got, found := set.Find(code)
		if !found || got.Code != want.Code || got.Description != want.Description || got.Billable != want.Billable {
			t.Errorf("%s: %t %+v", code, found, got)
		}
	}
	for _, code := range []string{"", ".", "I50.99", "Z99.99", "S06.357D", "S06.357", "heart", "I50.9 ", "G35"} {
		if got, found := set.Find(code); found && got.Billable && code != "I50.9 " {
			t.Errorf("%q is found as %+v", code, got)
		}
	}
}

func TestSearch(t *testing.T) {
	set := all(t)
	for words, first := range map[string][]string{
		"heart fail":            {"I50.9", "I50.22", "I50.32"},
		"fail heart":            {"I50.9"},
		"FAILURE, heart":        {"I50.9"},
		"high blood pressure":   {"I10"},
		"essential hypert":      {"I10"},
		"i50":                   {"I50.1", "I50.20", "I50.21"},
		"I50.2":                 {"I50.20", "I50.21", "I50.22", "I50.23", "I50.2"},
		"I502":                  {"I50.20", "I50.21", "I50.22", "I50.23", "I50.2"},
		"i50 acute syst":        {"I50.21", "I50.23"},
		"type 2 diab":           {"E11.65", "E11.9"},
		"COPD":                  {"J44.9"},
		"meniere":               {"H81.03"},
		"ménière":               {"H81.03"},
		"congestive heart fail": {"I50.22", "I50.32", "I50.9"},
		"obstructive sleep apn": {"G47.33"},
		"straussler gerst":      {"A81.82"},
	} {
		hits, total := set.Search(icd10.Query{Words: words, Limit: 20})
		var got []string
		for _, hit := range hits {
			got = append(got, hit.Code)
		}
		for i, want := range first {
			if len(got) <= i || got[i] != want {
				t.Errorf("%q finds %v of %d, want first %v", words, got, total, first)
				break
			}
		}
	}
}

func TestSearchOrder(t *testing.T) {
	set := all(t)
	hits, total := set.Search(icd10.Query{Words: "heart failure", Limit: 10_000})
	if total != len(hits) {
		t.Errorf("%d hits of %d", len(hits), total)
	}
	for i, hit := range hits {
		if i > 0 && hit.Billable && !hits[i-1].Billable {
			t.Errorf("%s is billable and comes behind %s", hit.Code, hits[i-1].Code)
		}
		texts := strings.ToLower(hit.Description + " | " + strings.Join(hit.Synonyms, " | "))
		if !strings.Contains(texts, "heart") || !strings.Contains(texts, "failure") {
			t.Errorf("%s has not every word: %s", hit.Code, texts)
		}
	}
	some, again := set.Search(icd10.Query{Words: "heart failure", Offset: 3, Limit: 4})
	if again != total || !slices.EqualFunc(some, hits[3:7], func(a, b icd10.Hit) bool { return a.Code == b.Code }) {
		t.Errorf("a page is %+v", some)
	}
	only, fewer := set.Search(icd10.Query{Words: "heart failure", BillableOnly: true, Limit: 10_000})
	if fewer >= total || slices.ContainsFunc(only, func(h icd10.Hit) bool { return !h.Billable }) {
		t.Errorf("%d of %d are billable", fewer, total)
	}
	synonym, _ := set.Search(icd10.Query{Words: "high blood pressure", Limit: 1})
	if synonym[0].Synonym != "high blood pressure" {
		t.Errorf("found as %q", synonym[0].Synonym)
	}
	for _, words := range []string{"", "  ", "heart xyzzy", ".,-", "U07.1"} {
		if hits, total := set.Search(icd10.Query{Words: words, Limit: 5}); total != 0 || hits == nil {
			t.Errorf("%q finds %d: %+v", words, total, hits)
		}
	}
	for _, offset := range []int{total, total + 1, 1 << 30} {
		if hits, _ := set.Search(icd10.Query{Words: "heart failure", Offset: offset, Limit: 5}); len(hits) != 0 {
			t.Errorf("behind the end are %+v", hits)
		}
	}
}

// Truncated or modified data is rejected without a panic.
func FuzzUnpack(f *testing.F) {
	for _, raw := range []string{"", "vigil-icd10-1\n", "vigil-icd10-1\n\x01a\x08A00    b\x03\x01\x00\x00", "vigil-icd10-1\n\x01a\x08A00    b\x03\x02\x00\x00"} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(raw)
		_ = z.Close()
		set, err := icd10.Unpack(&packed)
		if err != nil {
			return
		}
		for _, code := range set.Codes() {
			set.Find(code)
		}
		set.Search(icd10.Query{Words: string(raw), Limit: 3})
	})
}

func TestUnpackRefuses(t *testing.T) {
	for _, raw := range []string{"", "vigil-icd10-1\n", "vigil-icd10-1\n\x01a\x08A00    b\x03\x02\x00\x00", "vigil-icd10-1\n\x01a\x08A00    b\x01\x01", "vigil-icd10-1\n\x01a\x07A00    \x03\x01\x00\x00", "vigil-icd10-1\n\x01a\x08A00    b\x02\x00\x00"} {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write([]byte(raw))
		_ = z.Close()
		if _, err := icd10.Unpack(&packed); err == nil {
			t.Errorf("%q is taken", raw)
		}
	}
	if _, err := icd10.Unpack(strings.NewReader("no gzip")); err == nil {
		t.Error("what is not compressed is taken")
	}
}

func BenchmarkSearch(b *testing.B) {
	set := all(b)
	for b.Loop() {
		set.Search(icd10.Query{Words: "heart fail", Limit: 20})
	}
}

func BenchmarkUnpack(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := icd10.Reread(); err != nil {
			b.Fatal(err)
		}
	}
}
