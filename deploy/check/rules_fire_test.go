package check

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	strict "sigs.k8s.io/yaml"
)

const rulesFile = "../prometheus/vigil.rules.yml"

// ruleTests has the members of promtool's test format that the file uses.
type ruleTests struct {
	RuleFiles []string       `json:"rule_files"`
	Every     model.Duration `json:"evaluation_interval"`
	Tests     []ruleTest     `json:"tests"`
}

type ruleTest struct {
	Name     string         `json:"name"`
	Interval model.Duration `json:"interval"`
	Series   []series       `json:"input_series"`
	Alerts   []alertAt      `json:"alert_rule_test"`
}

type series struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

type alertAt struct {
	At    model.Duration `json:"eval_time"`
	Name  string         `json:"alertname"`
	Fires []struct {
		Labels      map[string]string `json:"exp_labels"`
		Annotations map[string]string `json:"exp_annotations"`
	} `json:"exp_alerts"`
}

// end returns the time of the last query.
func (r ruleTest) end() (last time.Duration) {
	for _, asked := range r.Alerts {
		last = max(last, time.Duration(asked.At))
	}
	return last
}

func readRuleTests(t *testing.T) (tests ruleTests) {
	t.Helper()
	if err := strict.UnmarshalStrict(deployed(t, "prometheus/vigil.rules.test.yml"), &tests); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(tests.RuleFiles, []string{"vigil.rules.yml"}) || len(tests.Tests) == 0 {
		t.Fatalf("%d tests of %v", len(tests.Tests), tests.RuleFiles)
	}
	return tests
}

// Each rule fires for its own cause and ends with it, in one practice of thirty, and no other rule fires at the same time.
func TestRulesFireAndClear(t *testing.T) {
	tests := readRuleTests(t)
	for _, test := range tests.Tests {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			playRules(t, test, max(time.Duration(tests.Every), time.Duration(test.Interval)))
		})
	}
}

// The comparison finds a firing rule, in the one practice of thirty that it fires for.
func TestOnePracticeOfThirtyIsSeen(t *testing.T) {
	minute := model.Duration(time.Minute)
	test := ruleTest{
		Name: "one is down", Interval: minute, Alerts: []alertAt{{At: 20 * minute, Name: "VigilDown"}},
		Series: []series{{`up{job="vigil", instance="elm:9090", practice="elm"}`, "0x30"}},
	}
	fired := firing(t, loadRules(t, test), test, time.Minute)[20*time.Minute]["VigilDown"]
	if len(fired) != 1 || !strings.Contains(fired[0], `practice="elm"`) {
		t.Errorf("one practice of thirty is down, and what fires is %v", fired)
	}
}

// playRules compares the firing rules at each query time with the file.
func playRules(t *testing.T, test ruleTest, step time.Duration) {
	t.Helper()
	found := firing(t, loadRules(t, test), test, step)
	own := map[string]bool{}
	for _, asked := range test.Alerts {
		own[asked.Name] = true
		var want []string
		for _, alert := range asked.Fires {
			said := maps.Clone(alert.Labels)
			said[model.AlertNameLabel] = asked.Name
			want = append(want, labels.FromMap(said).String()+" "+labels.FromMap(alert.Annotations).String())
		}
		got := found[time.Duration(asked.At)][asked.Name]
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("%s after %s:\nwant %s\ngot  %s", asked.Name, asked.At, strings.Join(want, "\n     "), strings.Join(got, "\n     "))
		}
	}
	for at, alerts := range found {
		for name, fired := range alerts {
			if !own[name] {
				t.Errorf("after %s also: %s", at, strings.Join(fired, "\n"))
			}
		}
	}
}

// rulesUnderTest is the alerting part of Prometheus: samples over time, and the rules of the file.
type rulesUnderTest struct {
	samples *promqltest.LazyLoader
	groups  map[string]*rules.Group
}

func loadRules(t *testing.T, test ruleTest) rulesUnderTest {
	t.Helper()
	samples, err := promqltest.NewLazyLoader(loading(t, test), promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := samples.Close(); err != nil {
			t.Error(err)
		}
	})
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(samples.QueryEngine(), samples.Storage()), Appendable: samples.Storage(), Queryable: samples.Queryable(),
		Context: t.Context(), Logger: slog.New(slog.DiscardHandler), Parser: parser.NewParser(parser.Options{}),
		NameValidationScheme: model.UTF8Validation, NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	})
	groups, problems := manager.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, rulesFile)
	for _, problem := range problems {
		t.Fatal(problem)
	}
	return rulesUnderTest{samples, groups}
}

// firing returns the firing alerts at each query time, by name: labels and annotations.
func firing(t *testing.T, under rulesUnderTest, test ruleTest, step time.Duration) map[time.Duration]map[string][]string {
	t.Helper()
	asked := map[time.Duration]bool{}
	for _, alert := range test.Alerts {
		asked[time.Duration(alert.At)] = true
	}
	found := map[time.Duration]map[string][]string{}
	start := time.Unix(0, 0).UTC()
	for at := time.Duration(0); at <= test.end(); at += step {
		under.samples.WithSamplesTill(start.Add(at), func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range under.groups {
				group.Eval(under.samples.Context(), start.Add(at))
			}
		})
		if !asked[at] {
			continue
		}
		found[at] = map[string][]string{}
		for _, group := range under.groups {
			for _, rule := range group.AlertingRules() {
				if err := rule.LastError(); err != nil {
					t.Fatal(err)
				}
				for _, alert := range rule.ActiveAlerts() {
					if alert.State == rules.StateFiring {
						found[at][rule.Name()] = append(found[at][rule.Name()], alert.Labels.String()+" "+alert.Annotations.String())
					}
				}
			}
		}
	}
	if len(found) != len(asked) {
		t.Fatalf("%s asks between two evaluations, which are %s apart", test.Name, step)
	}
	return found
}

var metric = regexp.MustCompile(`^[a-zA-Z_:]+`)

// loading returns all series in the format of Prometheus' tests: those of the test, the rest of that practice, and 29 healthy practices.
func loading(t *testing.T, test ruleTest) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/healthy.yml")
	if err != nil {
		t.Fatal(err)
	}
	step := time.Duration(test.Interval)
	filled := strings.NewReplacer("{later}", strconv.Itoa(int(test.end()/step)), "{step}", strconv.Itoa(int(step.Seconds()))).Replace(string(raw))
	var healthy []series
	if err := strict.UnmarshalStrict([]byte(filled), &healthy); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "load %s\n", test.Interval)
	ill := map[string]bool{}
	for _, one := range test.Series {
		ill[metric.FindString(one.Series)] = true
		fmt.Fprintf(&text, "  %s %s\n", one.Series, one.Values)
	}
	for i := range 30 {
		practice := fmt.Sprintf("p%02d", i)
		if i == 0 {
			practice = "elm"
		}
		for _, one := range healthy {
			name := metric.FindString(one.Series)
			if i == 0 && ill[name] {
				continue
			}
			others := strings.Trim(strings.TrimPrefix(one.Series, name), "{}")
			fmt.Fprintf(&text, "  %s{job=\"vigil\", instance=\"%s:9090\", practice=%q, %s} %s\n", name, practice, practice, others, one.Values)
		}
	}
	return strings.ReplaceAll(text.String(), ", }", "}")
}
