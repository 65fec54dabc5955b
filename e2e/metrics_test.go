package e2e

import (
	"bufio"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// scrape reads all samples of /metrics by name and labels.
func scrape(t *testing.T, addr string) (samples map[string]float64, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	samples = map[string]float64{}
	var all strings.Builder
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		line := lines.Text()
		all.WriteString(line + "\n")
		i := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || i < 0 {
			continue
		}
		if samples[line[:i]], err = strconv.ParseFloat(line[i+1:], 64); err != nil {
			return nil, line // not the metrics format
		}
	}
	return samples, all.String()
}

// sum adds the samples of a name with labels that contain all given texts.
func sum(samples map[string]float64, name string, labels ...string) (total float64) {
	for key, value := range samples {
		base, rest, _ := strings.Cut(key, "{")
		holds := base == name
		for _, label := range labels {
			holds = holds && strings.Contains(rest, label)
		}
		if holds {
			total += value
		}
	}
	return total
}

// /metrics agrees with the API after readings that were stored, repeated, refused, alerted on and delivered.
func TestMetricsAgreeWithTheAPI(t *testing.T) {
	emrServer := httptest.NewUnstartedServer(nil)
	emrURL := "http://" + emrServer.Listener.Addr().String()
	metricsAddr, addr := freeAddr(t), freeAddr(t)
	p := newPractice(t, append(emrSettings(emrURL), "VIGIL_METRICS_ADDR="+metricsAddr)...)
	p.URL = "http://" + addr
	emr, err := sandbox.NewEMR(sandbox.EMROptions{BaseURL: emrURL, PracticeCode: practiceCode, ClientID: clientID, JWKSURL: p.URL + "/.well-known/jwks.json", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	emrServer.Config.Handler = emr
	emrServer.Start()
	t.Cleanup(emrServer.Close)
	serveHere(t, p, addr)

	patient := p.patient(t, object{"first_name": "Zoë", "last_name": "Critical", "mrn": "METRICS-1", "external_id": "Patient/" + emrPatient, "gateway_patient_id": "GW-77"})
	const calm, critical = 5, 2
	when := time.Now().Truncate(time.Second)
	for n := range calm {
		p.signed(t, measurement("GW-77", "BP-1001", 120, 75, when.Add(-time.Duration(n+10)*time.Minute))).expect(t, 200)
	}
	for n := range critical {
		p.signed(t, measurement("GW-77", "BP-1001", 190, 85, when.Add(-time.Duration(n+1)*time.Minute))).expect(t, 200)
	}
	p.signed(t, measurement("GW-77", "BP-1001", 120, 75, when.Add(-10*time.Minute))).expect(t, 200) // a duplicate
	p.signed(t, measurement("GW-0000", "BP-9", 120, 75, when.Add(-time.Minute))).expect(t, 200)     // quarantined
	p.post(t, "/api/v1/gateway/webhook/", "", object{"unsigned": true}).expect(t, 401)
	p.post(t, "/api/v1/ingestion/weight/", p.Admin(t), object{"patient_id": patient, "weight_kg": 9000, "measured_at": when.UTC().Format(time.RFC3339)}).expect(t, 400)
	p.post(t, "/api/v1/ingestion/weight/", p.Admin(t), object{"patient_id": patient, "weight_kg": 80, "measured_at": when.UTC().Format(time.RFC3339)}).expect(t, 201)
	const stored = calm + critical + 1
	fhir := func(path string) float64 {
		return numberAt(t, p.get(t, "/api/v1/fhir/status/", p.Admin(t)).expect(t, 200), path)
	}
	eventually(t, within, "everything is delivered", func() bool { return fhir("today_stats.transmitted") == stored })

	eventually(t, within, "the last delivery is counted", func() bool { // the metric follows shortly after the delivery is stored
		samples, _ := scrape(t, metricsAddr)
		return sum(samples, "vigil_deliveries_total", `outcome="transmitted"`) >= stored && sum(samples, "vigil_delivery_seconds_count") >= stored
	})

	samples, text := scrape(t, metricsAddr)
	api := map[string]float64{}
	for name, path := range map[string]string{
		"readings today": "/api/v1/ingestion/status/ observations_today", "alerts": "/api/v1/triage/patients/stats/ total_unacknowledged_alerts",
		"transmitted": "/api/v1/fhir/status/ today_stats.transmitted", "waiting": "/api/v1/fhir/status/ queue.pending",
		"quarantine": "/api/v1/ingestion/quarantine/?status=open count", "mean ms": "/api/v1/dashboard/stats/ avg_processing_time_ms",
		"vital alerts": "/api/v1/dashboard/stats/ vital_alerts",
	} {
		address, field, _ := strings.Cut(path, " ")
		api[name] = numberAt(t, p.get(t, address, p.Admin(t)).expect(t, 200), field)
	}
	api["vital alerts"]-- // the alert about the implausible weight, which is not stored as a reading
	for _, row := range at(t, p.get(t, "/api/v1/dashboard/stats/processing/", p.Admin(t)).expect(t, 200), "results").([]any) {
		api["processed"] += row.(object)["count"].(float64)
	}
	storage := sum(samples, "vigil_reading_storage_seconds_sum") / sum(samples, "vigil_reading_storage_seconds_count")
	metrics := map[string]float64{
		"readings today": sum(samples, "vigil_readings_stored_total"), "processed": sum(samples, "vigil_reading_storage_seconds_count"),
		"alerts": sum(samples, "vigil_alerts_unacknowledged"), "vital alerts": sum(samples, "vigil_alerts_raised_total"),
		"transmitted": sum(samples, "vigil_deliveries_total", `outcome="transmitted"`), "waiting": sum(samples, "vigil_queue_depth", `"transmissions"`),
		"quarantine": sum(samples, "vigil_queue_depth", `"quarantine"`), "mean ms": math.Round(storage * 1000),
	}
	if !maps.Equal(api, metrics) {
		t.Errorf("the API returns %v, the metrics %v", api, metrics)
	}
	for name, want := range map[string]float64{
		"vigil_delivery_seconds_count": stored, "vigil_alert_raising_seconds_count": api["vital alerts"], "vigil_rejections_total": 3,
	} {
		if got := sum(samples, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for label, want := range map[string]float64{`status="200"`: calm + critical + 2, `status="401"`: 1} {
		if got := sum(samples, "vigil_http_requests_total", `route="/api/v1/gateway/webhook/"`, label); got != want {
			t.Errorf("%v webhooks with %s, want %v", got, label, want)
		}
	}
	if waiting := samples[`vigil_queue_depth{queue="readings"}`]; waiting != 0 {
		t.Errorf("%v readings are pending", waiting)
	}
	// A busy machine may be degraded for a while: both must report the same state.
	eventually(t, within, "the metrics agree with the health endpoint", func() bool {
		status := func() any { return at(t, p.get(t, "/health/", "").expect(t, 200), "status") }
		before := status()
		samples, _ := scrape(t, metricsAddr)
		value := sum(samples, "vigil_service_health", `"overall"`)
		return before == status() && value == map[any]float64{"healthy": 1, "degraded": 0.5}[before]
	})
	for _, secret := range []string{patient, "METRICS-1", "GW-77", "Zoë", "BP-1001", "GW-0000"} {
		if strings.Contains(text, secret) {
			t.Errorf("the metrics name %s", secret)
		}
	}
	if _, served := scrape(t, addr); strings.Contains(served, "vigil_") {
		t.Error("the metrics are served on the public address")
	}
}

// numberAt returns a number of an answer.
func numberAt(t *testing.T, a answer, path string) float64 {
	t.Helper()
	value, ok := at(t, a, path).(float64)
	if !ok {
		t.Fatalf("%s is not a number", path)
	}
	return value
}
