package console_test

import (
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	wordEntry   = regexp.MustCompile(`(?s)\b([a-z][A-Za-z0-9_]*): \["((?:[^"\\]|\\.|"\s*\+ ")*)",\s*"((?:[^"\\]|\\.|"\s*\+ ")*)"\]`)
	wordUsed    = regexp.MustCompile(`\bt\(([^()]*(?:\([^()]*\)[^()]*)*)`)
	quoted      = regexp.MustCompile(`"([a-z][A-Za-z0-9_]*)"`)
	placeholder = regexp.MustCompile(`\{\w+\}`)
	markup      = regexp.MustCompile(`(?s)<[^<>]*>`)
	spoken      = regexp.MustCompile(`(?:aria-label|title|alt|placeholder)="[^"]*\p{L}[^"]*"`)
)

// portalModules returns the text of the portal's modules by name, without the catalogue.
func portalModules(t *testing.T) (modules map[string]string, catalogue string) {
	t.Helper()
	modules = map[string]string{}
	files, err := fs.Glob(os.DirFS("../../pb_public/app"), "portal/*.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, "views/my_health.js") {
		text, err := os.ReadFile("../../pb_public/app/" + name)
		if err != nil {
			t.Fatal(err)
		}
		modules[name] = string(text)
	}
	catalogue = modules["portal/words.js"]
	delete(modules, "portal/words.js")
	return modules, catalogue
}

// words returns the catalogue: English and Spanish by word.
func words(t *testing.T, catalogue string) map[string][2]string {
	t.Helper()
	all := map[string][2]string{}
	for _, m := range wordEntry.FindAllStringSubmatch(catalogue, -1) {
		if _, twice := all[m[1]]; twice {
			t.Errorf("%s is in the catalogue twice", m[1])
		}
		all[m[1]] = [2]string{m[2], m[3]}
	}
	return all
}

// Each word has a text in both languages with the same placeholders, and the portal uses only words of the catalogue, and all of them.
func TestPortalWordsAreComplete(t *testing.T) {
	modules, catalogue := portalModules(t)
	all := words(t, catalogue)
	if want := strings.Count(catalogue, `: ["`); len(all) != want || want < 80 {
		t.Errorf("the catalogue has %d entries, and %d have two texts", want, len(all))
	}
	for word, texts := range all {
		if texts[0] == "" || texts[1] == "" || texts[0] == texts[1] {
			t.Errorf("%s is %q in English and %q in Spanish", word, texts[0], texts[1])
		}
		english, spanish := placeholder.FindAllString(texts[0], -1), placeholder.FindAllString(texts[1], -1)
		slices.Sort(english)
		slices.Sort(spanish)
		if !slices.Equal(english, spanish) {
			t.Errorf("%s has the placeholders %v in English and %v in Spanish", word, english, spanish)
		}
	}
	used := map[string]bool{}
	source := strings.Join(slices.Collect(maps.Values(modules)), "\n")
	for _, call := range wordUsed.FindAllStringSubmatch(source, -1) {
		for _, m := range quoted.FindAllStringSubmatch(call[1], -1) {
			if _, known := all[m[1]]; !known && !slices.Contains(notWords, m[1]) {
				t.Errorf("the word %q is not in the catalogue", m[1])
			}
		}
	}
	for _, m := range quoted.FindAllStringSubmatch(source, -1) {
		used[m[1]] = true
	}
	for word := range all {
		if !used[word] && !slices.Contains(byCode, word) {
			t.Errorf("the word %q is not used", word)
		}
	}
}

// notWords are quoted values in conditions of a call, not words.
var notWords = []string{"my", "enter", "in"}

// byCode are words that the portal finds by a code of the API.
var byCode = []string{
	"blood_pressure", "weight", "pulse_oximetry", "blood_glucose", "body_temperature", "systolic", "diastolic", "pulse", "weight_kg", "spo2",
	"glucose_mg_dl", "temperature_c", "admin", "clinical_manager", "provider", "nurse", "ma", "data_monitor",
}

// No template of the portal has a text of its own: all texts come from the catalogue.
func TestPortalTextsAreTranslated(t *testing.T) {
	modules, _ := portalModules(t)
	for name, text := range modules {
		for rest := text; ; {
			_, after, found := strings.Cut(rest, "html`")
			if !found {
				break
			}
			rest = after
			bare := outsideExpressions(after)
			for _, m := range spoken.FindAllString(bare, -1) {
				t.Errorf("%s: %s", name, m)
			}
			if own := strings.TrimSpace(markup.ReplaceAllString(bare, " ")); regexp.MustCompile(`\p{L}{2,}`).MatchString(own) {
				t.Errorf("%s: the text %q is not in the catalogue", name, own)
			}
		}
	}
}

// outsideExpressions returns a template up to its end, without the expressions in it.
func outsideExpressions(text string) string {
	var out strings.Builder
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case depth == 0 && c == '`':
			return out.String()
		case depth == 0 && strings.HasPrefix(text[i:], "${"):
			depth, i = 1, i+1
			out.WriteByte('0') // stands for a value
		case depth > 0 && c == '{':
			depth++
		case depth > 0 && c == '}':
			depth--
		case depth == 0:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// The lists of the audit view name the events and record types of the audit trail, all and no others.
func TestAuditNamesAreComplete(t *testing.T) {
	text, err := os.ReadFile("../../pb_public/app/views/operations/audit_events.js")
	if err != nil {
		t.Fatal(err)
	}
	joined := regexp.MustCompile(`"\s*\+ "`).ReplaceAllString(string(text), "")
	codes := func(file, pattern string) (found []string) {
		source, err := os.ReadFile("../../internal/audit/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(source), -1) {
			found = append(found, m[1])
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	var events []string
	for _, line := range regexp.MustCompile(`(?m)^  ([a-z_]+): "([a-z_ ]+)",$`).FindAllStringSubmatch(joined, -1) {
		for _, verb := range strings.Fields(line[2]) {
			events = append(events, line[1]+"."+verb)
		}
	}
	slices.Sort(events)
	if want := codes("events.go", `"([a-z_]+\.[a-z_]+)"`); !slices.Equal(events, want) {
		t.Errorf("the audit view names the events %v, not %v", events, want)
	}
	types := regexp.MustCompile(`recordTypes = \("([A-Za-z ]+)"\)`).FindStringSubmatch(joined)
	if want := codes("resources.go", `Resource\w+\s*=\s*"(\w+)"`); types == nil || !slices.Equal(strings.Fields(types[1]), want) {
		t.Errorf("the audit view names the record types %v, not %v", types, want)
	}
}
