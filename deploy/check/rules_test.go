package check

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// Prometheus' own parser reads the alert rules.
func TestRules(t *testing.T) {
	groups, problems := rulefmt.ParseFile("../prometheus/vigil.rules.yml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, problem := range problems {
		t.Error(problem)
	}
	if len(problems) == 0 && len(groups.Groups) == 0 {
		t.Error("there are no rules")
	}
}

// So it does every expression of the dashboard.
func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile("../grafana/vigil.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			expression := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m") // Grafana puts it in
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(expression); err != nil {
				t.Errorf("%s: %v", panel.Title, err)
			}
		}
	}
}
