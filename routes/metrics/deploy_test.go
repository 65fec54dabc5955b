package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"
)

// metricNames returns all metrics that can exist, as queries may name them.
func metricNames() map[string]bool {
	descs := make(chan *prometheus.Desc)
	go func() {
		m := New("test")
		m.registry.MustRegister(sourceCollector{}, EventCollector{})
		m.registry.Describe(descs)
		close(descs)
	}()
	all := map[string]bool{}
	for desc := range descs {
		name, _, _ := strings.Cut(strings.TrimPrefix(desc.String(), `Desc{fqName: "`), `"`)
		all[name] = true
		if strings.HasSuffix(name, "_seconds") {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				all[name+part] = true
			}
		}
	}
	return all
}

var named = regexp.MustCompile(`\b(?:vigil|go|process)_[a-z_]+\b`)

func checkExpression(t *testing.T, known map[string]bool, where, expression string) (used []string) {
	t.Helper()
	used = named.FindAllString(expression, -1)
	for _, name := range used {
		if !known[name] {
			t.Errorf("%s queries %s, which does not exist", where, name)
		}
	}
	if strings.Count(expression, "(") != strings.Count(expression, ")") {
		t.Errorf("%s: %s", where, expression)
	}
	return used
}

// Alert rules and the dashboard query only metrics that exist, and the dashboard shows all of Vigil's. Prometheus' own parser checks the expressions
// in deploy/check, a module of its own.
func TestRulesAndDashboardUseExistingMetrics(t *testing.T) {
	known := metricNames()
	raw, err := os.ReadFile("../../deploy/prometheus/vigil.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(raw, &rules); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			checkExpression(t, known, rule.Alert, rule.Expr)
			if seen[rule.Alert] || rule.Annotations["summary"] == "" || !slices.Contains([]string{"page", "ticket"}, rule.Labels["severity"]) {
				t.Errorf("%s is a duplicate, or has no summary or severity", rule.Alert)
			}
			seen[rule.Alert] = true
		}
	}
	if len(seen) < 15 {
		t.Errorf("%d rules", len(seen))
	}
	if raw, err = os.ReadFile("../../deploy/grafana/vigil.json"); err != nil {
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
	shown := map[string]bool{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			for _, name := range checkExpression(t, known, panel.Title, target.Expr) {
				for _, part := range []string{"_bucket", "_sum", "_count"} {
					name = strings.TrimSuffix(name, part)
				}
				shown[name] = true
			}
		}
	}
	for name := range known {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "vigil_") && !shown[base] && !shown[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}
