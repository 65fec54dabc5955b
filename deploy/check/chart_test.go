package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	strict "sigs.k8s.io/yaml"
)

const chartFolder = "../helm/vigil"

// practice has the values that every rendering needs.
func practice(more map[string]any) map[string]any {
	values := map[string]any{"practice": "elm-street", "host": "rpm.example.org", "webhookHost": "hooks.rpm.example.org"}
	maps.Copy(values, more)
	return values
}

// render renders the chart with helm's own library and validates the values against its schema: one document per object.
func render(values map[string]any) (map[string]string, error) {
	chart, err := loader.LoadDir(chartFolder)
	if err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: "elm-street", Namespace: "vigil", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true, LintMode: false}.Render(chart, all)
	if err != nil {
		return nil, err
	}
	objects := map[string]string{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for _, document := range strings.Split(text, "\n---\n") {
			var head metav1.PartialObjectMetadata
			if err := strict.Unmarshal([]byte(document), &head); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
			if head.Kind != "" {
				objects[head.Kind+" "+head.Name] = document
			}
		}
	}
	return objects, nil
}

func rendered(t *testing.T, values map[string]any) map[string]string {
	t.Helper()
	objects, err := render(values)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// externalSecret has the members of the operator's document that the chart uses: the operator's types are not a Go module.
type externalSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		RefreshInterval metav1.Duration                       `json:"refreshInterval"`
		SecretStoreRef  struct{ Kind, Name string }           `json:"secretStoreRef"`
		Target          struct{ Name, DeletionPolicy string } `json:"target"`
		DataFrom        []struct {
			Extract struct{ Key string } `json:"extract"`
		} `json:"dataFrom"`
	} `json:"spec"`
}

// typed decodes a document as its kind and rejects unknown fields.
func typed(t *testing.T, document string) any {
	t.Helper()
	var head metav1.TypeMeta
	if err := strict.Unmarshal([]byte(document), &head); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]any{
		"v1/Service": &corev1.Service{}, "v1/ConfigMap": &corev1.ConfigMap{}, "apps/v1/StatefulSet": &appsv1.StatefulSet{},
		"batch/v1/CronJob": &batchv1.CronJob{}, "networking.k8s.io/v1/NetworkPolicy": &networkingv1.NetworkPolicy{},
		"networking.k8s.io/v1/Ingress": &networkingv1.Ingress{}, "policy/v1/PodDisruptionBudget": &policyv1.PodDisruptionBudget{},
		"monitoring.coreos.com/v1/ServiceMonitor": &monitoringv1.ServiceMonitor{}, "external-secrets.io/v1/ExternalSecret": &externalSecret{},
	}
	into := kinds[head.APIVersion+"/"+head.Kind]
	if into == nil {
		t.Fatalf("nobody knows %s %s", head.APIVersion, head.Kind)
	}
	if err := strict.UnmarshalStrict([]byte(document), into); err != nil {
		t.Fatalf("%s: %v\n%s", head.Kind, err, document)
	}
	return into
}

// find returns an object of a rendering.
func find[T any](t *testing.T, objects map[string]string, name string) T {
	t.Helper()
	document, is := objects[name]
	if !is {
		t.Fatalf("there is no %s among %v", name, slices.Sorted(maps.Keys(objects)))
	}
	object, is := typed(t, document).(T)
	if !is {
		t.Fatalf("%s is another kind", name)
	}
	return object
}

// pods returns the pod templates of a rendering, by their controller.
func pods(t *testing.T, objects map[string]string) map[string]corev1.PodTemplateSpec {
	t.Helper()
	found := map[string]corev1.PodTemplateSpec{}
	for name, document := range objects {
		switch object := typed(t, document).(type) {
		case *appsv1.StatefulSet:
			found[name] = object.Spec.Template
		case *batchv1.CronJob:
			found[name] = object.Spec.JobTemplate.Spec.Template
		}
	}
	return found
}

var everything = map[string]any{
	"externalSecret": map[string]any{"enabled": true}, "backup": map[string]any{"enabled": true},
	"settings": map[string]any{"VIGIL_BACKUP_S3_BUCKET": "b"}, "imagePullSecrets": []any{map[string]any{"name": "registry"}},
	"nodeSelector": map[string]any{"disk": "ssd"}, "tolerations": []any{map[string]any{"key": "dedicated", "operator": "Exists"}},
	"networkPolicy": map[string]any{"extraEgress": []any{map[string]any{"to": []any{map[string]any{"podSelector": map[string]any{}}}}}},
	"ingress":       map[string]any{"annotations": map[string]any{"a/b": "c"}}, "serviceMonitor": map[string]any{"labels": map[string]any{"release": "prometheus"}},
	"storage": map[string]any{"className": "fast"}, "replica": map[string]any{"url": "s3://bucket/elm"},
}

var nothing = map[string]any{
	"replica": map[string]any{"enabled": false}, "verify": map[string]any{"enabled": false}, "networkPolicy": map[string]any{"enabled": false},
	"podDisruptionBudget": map[string]any{"enabled": false}, "serviceMonitor": map[string]any{"enabled": false}, "ingress": map[string]any{"enabled": false},
}

func TestChartIsRendered(t *testing.T) {
	for _, message := range lint.RunAll(chartFolder, practice(nil), "vigil").Messages {
		if message.Severity >= support.WarningSev {
			t.Error(message)
		}
	}
	for what, test := range map[string]struct {
		values map[string]any
		kinds  string
	}{
		"as it is":   {nil, "ConfigMap CronJob Ingress NetworkPolicy PodDisruptionBudget Service Service ServiceMonitor StatefulSet"},
		"everything": {everything, "ConfigMap CronJob CronJob ExternalSecret ExternalSecret Ingress NetworkPolicy PodDisruptionBudget Service Service ServiceMonitor StatefulSet"},
		"nothing":    {nothing, "Service StatefulSet"},
	} {
		var kinds []string
		for name, document := range rendered(t, practice(test.values)) {
			kind, _, _ := strings.Cut(name, " ")
			kinds = append(kinds, kind)
			typed(t, document)
		}
		slices.Sort(kinds)
		if got := strings.Join(kinds, " "); got != test.kinds {
			t.Errorf("%s: %s, want %s", what, got, test.kinds)
		}
	}
}

// Every pod passes Kubernetes' level "restricted", writes only to its volumes, and mounts only volumes that exist.
func TestChartPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	all := pods(t, rendered(t, practice(everything)))
	if len(all) != 3 {
		t.Fatalf("pods of %v", slices.Sorted(maps.Keys(all)))
	}
	for name, pod := range all {
		for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
			if !result.Allowed {
				t.Errorf("%s: %s: %s", name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
		volumes := []string{"data"} // of the set's claim
		for _, volume := range pod.Spec.Volumes {
			volumes = append(volumes, volume.Name)
		}
		if *pod.Spec.AutomountServiceAccountToken || *pod.Spec.EnableServiceLinks {
			t.Errorf("%s knows of the cluster", name)
		}
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if !*container.SecurityContext.ReadOnlyRootFilesystem || container.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: %s writes anywhere, or takes all memory", name, container.Name)
			}
			for _, mount := range container.VolumeMounts {
				if !slices.Contains(volumes, mount.Name) {
					t.Errorf("%s: %s mounts %s, which is none of %v", name, container.Name, mount.Name, volumes)
				}
			}
		}
	}
}

// The check of restricted pods detects an unrestricted pod.
func TestOpenPodIsFound(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	open := &corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}
	results := evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &metav1.ObjectMeta{}, open)
	if !slices.ContainsFunc(results, func(r policy.CheckResult) bool { return !r.Allowed }) {
		t.Error("a pod that is open is let in")
	}
}

// A second pod cannot mount the volume; one of a backup job has to.
func TestVolumeIsOfOnePod(t *testing.T) {
	for mode, values := range map[corev1.PersistentVolumeAccessMode]map[string]any{
		corev1.ReadWriteOncePod: practice(nil), corev1.ReadWriteOnce: practice(map[string]any{"backup": map[string]any{"enabled": true}}),
	} {
		set := find[*appsv1.StatefulSet](t, rendered(t, values), "StatefulSet vigil-elm-street")
		if modes := set.Spec.VolumeClaimTemplates[0].Spec.AccessModes; len(modes) != 1 || modes[0] != mode {
			t.Errorf("the volume is %v, want %s", modes, mode)
		}
	}
	if !strings.Contains(string(deployed(t, "kubernetes.yaml")), "accessModes: [ReadWriteOncePod]") {
		t.Error("kubernetes.yaml lets a second pod mount the volume")
	}
}

func TestChartHangsTogether(t *testing.T) {
	objects := rendered(t, practice(everything))
	set := find[*appsv1.StatefulSet](t, objects, "StatefulSet vigil-elm-street")
	service := find[*corev1.Service](t, objects, "Service vigil-elm-street")
	budget := find[*policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget vigil-elm-street")
	network := find[*networkingv1.NetworkPolicy](t, objects, "NetworkPolicy vigil-elm-street")
	ingress := find[*networkingv1.Ingress](t, objects, "Ingress vigil-elm-street")
	monitor := find[*monitoringv1.ServiceMonitor](t, objects, "ServiceMonitor vigil-elm-street")
	pod := set.Spec.Template
	if *set.Spec.Replicas != 1 || set.Spec.ServiceName != service.Name || set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
		t.Errorf("a set of %d, of %s, and its volume goes with it", *set.Spec.Replicas, set.Spec.ServiceName)
	}
	wantServe(t, pod.Spec.Containers[0].Args)
	covers(t, "the set", set.Spec.Selector.MatchLabels, pod.Labels, true)
	covers(t, "the service", service.Spec.Selector, pod.Labels, true)
	covers(t, "the budget", budget.Spec.Selector.MatchLabels, pod.Labels, true)
	covers(t, "the monitor", monitor.Spec.Selector.MatchLabels, service.Labels, true)
	for name, other := range pods(t, objects) {
		covers(t, "the network policy", network.Spec.PodSelector.MatchLabels, other.Labels, true)
		covers(t, "the service, of "+name, service.Spec.Selector, other.Labels, strings.HasPrefix(name, "StatefulSet"))
	}
	if len(monitor.Spec.Endpoints) != 1 || monitor.Spec.Endpoints[0].Port != service.Spec.Ports[1].Name {
		t.Errorf("the monitor asks %v", monitor.Spec.Endpoints)
	}
	var labels []string
	for _, relabel := range monitor.Spec.Endpoints[0].RelabelConfigs {
		labels = append(labels, relabel.TargetLabel+"="+*relabel.Replacement)
	}
	if !slices.Equal(labels, []string{"practice=elm-street", "job=vigil"}) {
		t.Errorf("the rules need practice and job, and get %v", labels)
	}
	for _, rule := range ingress.Spec.Rules {
		for _, to := range rule.HTTP.Paths {
			if slices.Contains(closed, to.Path) {
				continue
			}
			if to.Backend.Service.Name != service.Name || to.Backend.Service.Port.Name != "http" {
				t.Errorf("%s leads to %v", rule.Host, to.Backend.Service)
			}
			if rule.Host == "hooks.rpm.example.org" && to.Path == "/" {
				t.Error("all of the service is open under the webhooks' name")
			}
		}
	}
}

// closed has the operator's paths: the dashboard, and its sign-in by the collection's name and id, as in deploy/Caddyfile.
var closed = []string{"/_", "/api/collections/_superusers", "/api/collections/pbc_3142635823"}

// The longest path of a name decides with every controller, so the operator's paths lead to no pod unless the values open them.
func TestChartClosesTheDashboard(t *testing.T) {
	for _, open := range []bool{false, true} {
		objects := rendered(t, practice(map[string]any{"ingress": map[string]any{"dashboard": open}}))
		ingress := find[*networkingv1.Ingress](t, objects, "Ingress vigil-elm-street")
		var shut []string
		for _, rule := range ingress.Spec.Rules {
			for _, to := range rule.HTTP.Paths {
				if to.Backend.Service.Name == "vigil-elm-street" {
					continue
				}
				nobody := find[*corev1.Service](t, objects, "Service "+to.Backend.Service.Name)
				if len(nobody.Spec.Selector) > 0 || nobody.Spec.Type != "" || nobody.Spec.Ports[0].Name != to.Backend.Service.Port.Name {
					t.Errorf("%s leads to %v", to.Path, nobody.Spec)
				}
				if rule.Host != "rpm.example.org" || *to.PathType != networkingv1.PathTypePrefix {
					t.Errorf("%s of %s is %s", to.Path, rule.Host, *to.PathType)
				}
				shut = append(shut, to.Path)
			}
		}
		want := closed
		if open {
			want = nil
		}
		if !slices.Equal(shut, want) {
			t.Errorf("dashboard %v: closed are %v, want %v", open, shut, want)
		}
	}
}

func covers(t *testing.T, what string, selector, labels map[string]string, want bool) {
	t.Helper()
	meets := len(selector) > 0
	for name, value := range selector {
		meets = meets && labels[name] == value
	}
	if meets != want {
		t.Errorf("%s selects %v, which has %v: %v", what, selector, labels, meets)
	}
}

// The plain example of one practice and the chart close the same paths.
func TestChartIsIsolated(t *testing.T) {
	objects := rendered(t, practice(nil))
	network := find[*networkingv1.NetworkPolicy](t, objects, "NetworkPolicy vigil-elm-street")
	pod := find[*appsv1.StatefulSet](t, objects, "StatefulSet vigil-elm-street").Spec.Template
	wantIsolated(t, *network, pod)
}

// Proxy headers and trusted proxies are set together, for all values.
func TestChartNamesProxies(t *testing.T) {
	c := find[*appsv1.StatefulSet](t, rendered(t, practice(nil)), "StatefulSet vigil-elm-street").Spec.Template.Spec.Containers[0]
	env := map[string]string{}
	for _, one := range c.Env {
		env[one.Name] = one.Value
	}
	prefix, err := netip.ParsePrefix(env["VIGIL_TRUSTED_PROXIES"])
	if err != nil || prefix.Bits() == 0 || env["VIGIL_TRUSTED_PROXY_HEADERS"] != "X-Forwarded-For" {
		t.Errorf("%s, and %s is believed (%v)", env["VIGIL_TRUSTED_PROXY_HEADERS"], env["VIGIL_TRUSTED_PROXIES"], err)
	}
	if env["VIGIL_ENVIRONMENT"] != "production" || env["VIGIL_PUBLIC_URL"] != "https://rpm.example.org" || env["VIGIL_METRICS_ADDR"] != "0.0.0.0:9090" {
		t.Errorf("%v", env)
	}
}

// A start that changes the schema is not killed; a process that hangs is; one without a working database gets no requests.
func TestChartProbes(t *testing.T) {
	c := find[*appsv1.StatefulSet](t, rendered(t, practice(nil)), "StatefulSet vigil-elm-street").Spec.Template.Spec.Containers[0]
	if c.StartupProbe.HTTPGet.Path != "/health/live" || c.StartupProbe.PeriodSeconds*c.StartupProbe.FailureThreshold < 1800 {
		t.Errorf("a long start is ended: %+v", c.StartupProbe)
	}
	if c.LivenessProbe.HTTPGet.Path != "/health/live" || c.ReadinessProbe.HTTPGet.Path != "/health/" {
		t.Errorf("alive by %s, ready by %s", c.LivenessProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path)
	}
}

func TestChartJobs(t *testing.T) {
	objects := rendered(t, practice(everything))
	set := find[*appsv1.StatefulSet](t, objects, "StatefulSet vigil-elm-street")
	backup := find[*batchv1.CronJob](t, objects, "CronJob vigil-elm-street-backup").Spec.JobTemplate.Spec.Template.Spec
	if claim := backup.Volumes[0].PersistentVolumeClaim.ClaimName; claim != set.Spec.VolumeClaimTemplates[0].Name+"-"+set.Name+"-0" {
		t.Errorf("the backup mounts %s", claim)
	}
	near := backup.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	if near.TopologyKey != "kubernetes.io/hostname" {
		t.Errorf("the backup runs where %s is the same", near.TopologyKey)
	}
	covers(t, "the affinity", near.LabelSelector.MatchLabels, set.Spec.Template.Labels, true)
	verify := find[*batchv1.CronJob](t, objects, "CronJob vigil-elm-street-verify").Spec.JobTemplate.Spec.Template.Spec
	for _, volume := range verify.Volumes {
		if volume.PersistentVolumeClaim != nil {
			t.Error("the verification sees the practice's own volume")
		}
	}
	var commands []string
	for _, c := range slices.Concat(backup.Containers, verify.InitContainers, verify.Containers) {
		commands = append(commands, c.Args[0]+" "+c.Args[1])
	}
	if !slices.Equal(commands, []string{"backup create", "restore -integrity-check", "audit verify", "backup verify"}) {
		t.Errorf("the jobs run %v", commands)
	}
}

// The schema rejects values that cannot work, or that would expose a secret.
func TestChartRefuses(t *testing.T) {
	for what, values := range map[string]map[string]any{
		"a secret among the settings":   practice(map[string]any{"settings": map[string]any{"VIGIL_ENCRYPTION_KEYS": "k:x"}}),
		"a setting that the chart sets": practice(map[string]any{"settings": map[string]any{"VIGIL_PUBLIC_URL": "https://a.example"}}),
		"another program's setting":     practice(map[string]any{"settings": map[string]any{"PATH": "/"}}),
		"a number as a setting":         practice(map[string]any{"settings": map[string]any{"VIGIL_BACKUP_KEEP": 3}}),
		"no practice":                   practice(map[string]any{"practice": ""}),
		"a name that is too long":       practice(map[string]any{"practice": "abcdefghijklmnopqrstuvwxyz1"}),
		"no host":                       practice(map[string]any{"host": ""}),
		"credentials in an address":     practice(map[string]any{"replica": map[string]any{"url": "s3://key:secret@bucket/a"}}),
		"a tag that is no label":        practice(map[string]any{"image": map[string]any{"repository": "r", "tag": "1.0.0+x"}}),
		"a field that is not":           practice(map[string]any{"replicas": 2}),
		"a schedule":                    practice(map[string]any{"verify": map[string]any{"schedule": "daily"}}),
	} {
		if _, err := render(values); err == nil {
			t.Errorf("%s is let through", what)
		}
	}
}

// The chart has the Litestream configuration of deploy, and the version that it installs.
func TestChartFilesAreOurs(t *testing.T) {
	own, err := os.ReadFile(filepath.Join(chartFolder, "litestream.yml"))
	if err != nil || !bytes.Equal(own, deployed(t, "litestream.yml")) {
		t.Errorf("the chart's litestream.yml is not deploy's (%v)", err)
	}
	config := find[*corev1.ConfigMap](t, rendered(t, practice(nil)), "ConfigMap vigil-elm-street-litestream")
	if strings.TrimSpace(config.Data["litestream.yml"]) != strings.TrimSpace(string(own)) {
		t.Errorf("Litestream gets %s", config.Data["litestream.yml"])
	}
	images := map[string]bool{}
	for _, pod := range pods(t, rendered(t, practice(everything))) {
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			images[c.Image] = true
		}
	}
	for image := range images {
		if !strings.Contains(string(deployed(t, "kubernetes.yaml")), "image: "+image+"\n") {
			t.Errorf("%s is not what kubernetes.yaml has", image)
		}
	}
}

// Chart, Prometheus and Caddy accept the output of `vigil fleet render` for the example.
func TestRenderedFleet(t *testing.T) {
	folder := "../../cmd/fleet/testdata/rendered"
	names, err := filepath.Glob(folder + "/helm/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var values map[string]any
		if err := strict.Unmarshal(text, &values); err != nil {
			t.Fatal(err)
		}
		for object, document := range rendered(t, values) {
			typed(t, document)
			if practice := strings.TrimSuffix(path.Base(name), ".yaml"); !strings.Contains(object, " vigil-"+practice) {
				t.Errorf("%s has %s", name, object)
			}
		}
	}
	text, err := os.ReadFile(folder + "/prometheus/practices.yml")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := strict.YAMLToJSONStrict(text)
	if err != nil {
		t.Fatal(err)
	}
	var targets []struct {
		Targets []string
		Labels  map[string]string
	}
	if err := json.Unmarshal(raw, &targets); err != nil || len(targets) != 3 {
		t.Fatal(targets, err)
	}
	for _, one := range targets {
		if len(one.Targets) != 1 || one.Labels["practice"] == "" {
			t.Errorf("%+v", one)
		}
	}
}
