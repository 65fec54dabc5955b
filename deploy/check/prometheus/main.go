// Command prometheus is a small Prometheus, built from Prometheus' own library for the drill of docs/three-practices.md, so that none must be
// installed: the same configuration, file-based targets, rules and samples, and the page's two queries; no web pages, cloud discovery or remote
// write. Under the name promtool it checks a file as promtool does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	_ "github.com/prometheus/prometheus/discovery/file"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
)

var (
	quiet   = slog.New(slog.DiscardHandler)
	reading = parser.NewParser(parser.Options{})
)

func main() {
	run := serve
	if filepath.Base(os.Args[0]) == "promtool" {
		run = check
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// check is `promtool check config FILE`: the file, and the rules that it names.
func check() error {
	if len(os.Args) != 4 || os.Args[1] != "check" || os.Args[2] != "config" {
		return errors.New("promtool check config FILE")
	}
	settings, err := config.LoadFile(os.Args[3], false, quiet)
	if err != nil {
		return err
	}
	if _, err := settings.GetScrapeConfigs(); err != nil {
		return err
	}
	for _, name := range settings.RuleFiles {
		groups, problems := rulefmt.ParseFile(name, false, model.UTF8Validation, reading, quiet)
		if err := errors.Join(problems...); err != nil {
			return err
		}
		found := 0
		for _, group := range groups.Groups {
			found += len(group.Rules)
		}
		fmt.Printf("SUCCESS: %s: %d rules found\n", name, found)
	}
	fmt.Printf("SUCCESS: %s is valid prometheus config file syntax\n", os.Args[3])
	return nil
}

func serve() error {
	file := flag.String("config.file", "prometheus.yml", "configuration file with targets and rules")
	folder := flag.String("storage.tsdb.path", "data", "folder of the samples")
	addr := flag.String("web.listen-address", "127.0.0.1:9090", "where questions are answered")
	flag.Parse()
	settings, err := config.LoadFile(*file, false, quiet)
	if err != nil {
		return err
	}
	samples, err := tsdb.Open(*folder, quiet, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		return err
	}
	if err := scrapeTargets(settings, samples); err != nil {
		return err
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, EnableNegativeOffset: true, EnableAtModifier: true})
	judging := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(engine, samples), Appendable: samples, Queryable: samples, Context: context.Background(), Logger: quiet,
		Parser: reading, NameValidationScheme: model.UTF8Validation, ExternalURL: &url.URL{}, NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	})
	if err := judging.Update(time.Duration(settings.GlobalConfig.EvaluationInterval), settings.RuleFiles, labels.EmptyLabels(), "", nil); err != nil {
		return err
	}
	go judging.Run()
	http.HandleFunc("GET /api/v1/alerts", func(w http.ResponseWriter, _ *http.Request) { answer(w, map[string]any{"alerts": active(judging)}) })
	http.HandleFunc("GET /api/v1/query", func(w http.ResponseWriter, r *http.Request) {
		query, err := engine.NewInstantQuery(r.Context(), samples, nil, r.FormValue("query"), time.Now())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		defer query.Close()
		found := query.Exec(r.Context())
		if found.Err != nil {
			http.Error(w, found.Err.Error(), http.StatusUnprocessableEntity)
			return
		}
		answer(w, map[string]any{"resultType": found.Value.Type(), "result": found.Value})
	})
	return http.ListenAndServe(*addr, nil)
}

// scrapeTargets starts to scrape the targets of the configuration's target files.
func scrapeTargets(settings *config.Config, samples *tsdb.DB) error {
	figures := prometheus.NewRegistry()
	known, err := discovery.CreateAndRegisterSDMetrics(figures)
	if err != nil {
		return err
	}
	finding := discovery.NewManager(context.Background(), quiet, figures, known)
	asking, err := scrape.NewManager(nil, quiet, nil, samples, nil, figures)
	if err != nil {
		return err
	}
	jobs, err := settings.GetScrapeConfigs()
	if err != nil {
		return err
	}
	targets := map[string]discovery.Configs{}
	for _, job := range jobs {
		targets[job.JobName] = job.ServiceDiscoveryConfigs
	}
	if err := errors.Join(asking.ApplyConfig(settings), finding.ApplyConfig(targets)); err != nil {
		return err
	}
	go func() { log.Fatal(finding.Run()) }()
	go func() { log.Fatal(asking.Run(finding.SyncCh())) }()
	return nil
}

// active returns every pending or firing alert in the form of Prometheus' API.
func active(judging *rules.Manager) []map[string]any {
	found := []map[string]any{}
	for _, rule := range judging.AlertingRules() {
		for _, alert := range rule.ActiveAlerts() {
			found = append(found, map[string]any{"labels": alert.Labels, "annotations": alert.Annotations, "state": alert.State.String()})
		}
	}
	return found
}

func answer(w http.ResponseWriter, data any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data}) // the caller may have disconnected
}
