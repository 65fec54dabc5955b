package check

import (
	"encoding/json"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// readRules returns the rules, parsed by Prometheus' own parser.
func readRules(t *testing.T) (all []rulefmt.Rule) {
	t.Helper()
	groups, problems := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, problem := range problems {
		t.Error(problem)
	}
	if len(problems) > 0 || len(groups.Groups) == 0 {
		t.Fatal("there are no rules")
	}
	for _, group := range groups.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// inspect parses an expression and calls a function with every part of it.
func inspect(t *testing.T, where, expression string, see func(parser.Node)) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		see(node)
		return nil
	})
}

// byPractice reports an expression's sums that would mix practices.
func byPractice(t *testing.T, where, expression string) {
	t.Helper()
	inspect(t, where, expression, func(node parser.Node) {
		sum, isSum := node.(*parser.AggregateExpr)
		if isSum && (sum.Without || !slices.Contains(sum.Grouping, "practice")) {
			t.Errorf("%s: %s puts practices together, where thirty hide the one that fails", where, sum)
		}
	})
}

// Every rule is about one practice, and names the problem, the first step and the runbook.
func TestRules(t *testing.T) {
	runbooks, err := os.ReadFile("../../docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	books := map[string]string{}
	for _, section := range strings.Split(string(runbooks), "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		books[name] = text
	}
	for _, rule := range readRules(t) {
		byPractice(t, rule.Alert, rule.Expr)
		said := rule.Annotations
		if !strings.Contains(said["summary"], "$labels.practice") || said["action"] == "" {
			t.Errorf("%s does not say which practice it is about and what to do: %v", rule.Alert, said)
		}
		if !slices.Contains([]string{"page", "ticket"}, rule.Labels["severity"]) {
			t.Errorf("%s has severity %q", rule.Alert, rule.Labels["severity"])
		}
		if want := "https://github.com/vigilhealth/vigil/blob/main/docs/runbooks.md#" + strings.ToLower(rule.Alert); said["runbook_url"] != want {
			t.Errorf("%s leads to %s, want %s", rule.Alert, said["runbook_url"], want)
		}
		for _, part := range []string{"**What it means.**", "**How bad.**", "**First.**\n\n1. ", "**Over when.**"} {
			if !strings.Contains(books[rule.Alert], part) {
				t.Errorf("the runbook of %s lacks %q", rule.Alert, part)
			}
		}
		if book := books[rule.Alert]; !strings.HasPrefix(strings.ToLower(strings.TrimSpace(book)), rule.Labels["severity"]+".") {
			t.Errorf("the runbook of %s does not begin with %s", rule.Alert, rule.Labels["severity"])
		}
		delete(books, rule.Alert)
	}
	for name := range books {
		t.Errorf("there is a runbook for %s, which is no rule", name)
	}
}

// Each rule has a test in which it fires and ends.
func TestRulesAreTested(t *testing.T) {
	fires, ends := map[string]bool{}, map[string]bool{}
	for _, test := range readRuleTests(t).Tests {
		name, _, _ := strings.Cut(test.Name, ":")
		for _, asked := range test.Alerts {
			if asked.Name != name {
				continue
			}
			if len(asked.Fires) > 0 {
				fires[name] = true
			} else if fires[name] {
				ends[name] = true
			}
		}
	}
	for _, rule := range readRules(t) {
		if !fires[rule.Alert] || !ends[rule.Alert] {
			t.Errorf("%s fires in a test: %v, and is over afterwards: %v", rule.Alert, fires[rule.Alert], ends[rule.Alert])
		}
	}
}

// board has the checked members of a Grafana dashboard.
type board struct {
	UID        string
	Templating struct {
		List []struct{ Name, Type string }
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

func readBoard(t *testing.T, name string) (read board) {
	t.Helper()
	if err := json.Unmarshal(deployed(t, "grafana/"+name), &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Panels) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return read
}

// expressions returns each expression of a board, with Grafana's variables replaced.
func (b board) expressions(see func(title, expression string)) {
	for _, panel := range b.Panels {
		for _, target := range panel.Targets {
			see(panel.Title, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
}

// Every panel of the board shows the selected practice.
func TestBoard(t *testing.T) {
	one := readBoard(t, "vigil.json")
	if !slices.ContainsFunc(one.Templating.List, func(v struct{ Name, Type string }) bool { return v.Name == "practice" && v.Type == "query" }) {
		t.Error("one cannot choose a practice")
	}
	one.expressions(func(title, expression string) {
		inspect(t, title, expression, func(node parser.Node) {
			selector, isSelector := node.(*parser.VectorSelector)
			if !isSelector {
				return
			}
			for _, matcher := range selector.LabelMatchers {
				if matcher.Name == "practice" && matcher.Value == "$practice" {
					return
				}
			}
			t.Errorf("%s shows %s of all practices", title, selector)
		})
	})
}

// The page over all practices labels every figure with its practice.
func TestBoardOfAllPractices(t *testing.T) {
	all := readBoard(t, "vigil-practices.json")
	one := readBoard(t, "vigil.json")
	known := map[string]bool{"up": true, "ALERTS": true} // Prometheus' own; what the board of one practice shows is held against the program
	one.expressions(func(title, expression string) {
		inspect(t, title, expression, func(node parser.Node) {
			if selector, isSelector := node.(*parser.VectorSelector); isSelector {
				known[selector.Name] = true
			}
		})
	})
	all.expressions(func(title, expression string) {
		byPractice(t, title, expression)
		inspect(t, title, expression, func(node parser.Node) {
			if selector, isSelector := node.(*parser.VectorSelector); isSelector && !known[selector.Name] {
				t.Errorf("%s asks for %s, which the board of a practice does not show", title, selector.Name)
			}
		})
	})
	link := regexp.MustCompile(`/d/` + one.UID + `\b[^"]*var-practice=`)
	if !link.Match(deployed(t, "grafana/vigil-practices.json")) {
		t.Error("it does not lead to the board of a practice")
	}
}
