package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// weigh sends a weight of the scale W-1 and returns the observation.
func (c *clinic) weigh(patient string, kg float64, at time.Time) reply {
	c.t.Helper()
	if at.After(c.now) {
		c.now = at
	}
	return c.request(authz.Nurse, "POST", "/ingestion/weight/", object{
		"patient_id": patient, "weight_kg": kg, "device_id": "W-1", "measured_at": at.Format(time.RFC3339),
	})
}

// alertsRaised lists a patient's alerts, oldest first: type, level, parameter, value and threshold.
func (c *clinic) alertsRaised(patient string) (list []string) {
	c.t.Helper()
	for _, alert := range c.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", patient, "page_size", "100"), nil).results() {
		list = append(list, fmt.Sprint(alert["type"], " ", alert["level"], " ", alert["parameter"], " ", alert["value"], "/", alert["threshold"]))
	}
	slices.Reverse(list)
	return list
}

func wantSame(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// kgOf converts pounds as the service stores them.
func kgOf(pounds float64) float64 { return float64(int(pounds*0.45359237*100+0.5)) / 100 }

// local returns a time on the zone's wall clock.
func local(zone *time.Location, text string) time.Time {
	at, err := time.ParseInLocation("2006-01-02 15:04", text, zone)
	if err != nil {
		panic(err)
	}
	return at
}

// Heart failure: three pounds overnight, five within a week, and a slow gain over the target weight are each a warning.
func TestStoryWeightRules(t *testing.T) {
	for _, zone := range []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe"} {
		where, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for name, story := range map[string]struct {
			config object
			// weights by the patient's clock
			weights []string
			kg      []float64
			want    []string
		}{
			"3.2 lb overnight": {
				weights: []string{"2026-01-20 07:00", "2026-01-21 07:10"}, kg: []float64{kgOf(180), kgOf(183.2)},
				want: []string{"weight warning weight_daily_change 1.45/1.4"},
			},
			"3.2 lb lost overnight": {weights: []string{"2026-01-20 07:00", "2026-01-21 07:10"}, kg: []float64{kgOf(183.2), kgOf(180)}},
			"the evening before last is two days ago": {
				weights: []string{"2026-01-19 23:50", "2026-01-21 00:10"}, kg: []float64{80, 81.45},
			},
			"from the morning to the next evening is one": {
				weights: []string{"2026-01-20 00:05", "2026-01-21 23:55"}, kg: []float64{80, 81.4},
				want: []string{"weight warning weight_daily_change 1.4/1.4"},
			},
			"6 lb within a week, 7 days and 5 minutes apart": {
				weights: []string{"2026-01-20 07:00", "2026-01-27 07:05"}, kg: []float64{kgOf(180), kgOf(186)},
				want: []string{"weight warning weight_change 2.72/2.3"},
			},
			"6 lb in eight days": {weights: []string{"2026-01-20 23:55", "2026-01-28 00:05"}, kg: []float64{kgOf(180), kgOf(186)}},
			"7 days over the change to summer time": {
				weights: []string{"2026-03-07 00:05", "2026-03-14 23:55", "2026-03-29 00:05", "2026-04-05 23:55"}, kg: []float64{80, 82.3, 82.3, 84.6},
				want: []string{"weight warning weight_change 2.3/2.3", "weight warning weight_change 2.3/2.3"},
			},
			"7 days over the change to winter time": {
				weights: []string{"2026-10-25 00:05", "2026-11-01 23:55"}, kg: []float64{80, 82.3},
				want: []string{"weight warning weight_change 2.3/2.3"},
			},
			"a creep of 4.2 kg in 14 days over the target weight": {
				config:  object{"target_kg": 80},
				weights: []string{"2026-01-20 07:00", "2026-01-24 07:00", "2026-01-27 07:00", "2026-01-30 07:00", "2026-02-03 07:00"}, kg: []float64{80, 81.2, 82.1, 83, 84.2},
				want: []string{"weight warning weight_over_target 3/2.3", "weight warning weight_over_target 4.2/2.3"},
			},
			"the same creep without a target": {
				weights: []string{"2026-01-20 07:00", "2026-01-24 07:00", "2026-01-27 07:00", "2026-01-30 07:00", "2026-02-03 07:00"}, kg: []float64{80, 81.2, 82.1, 83, 84.2},
			},
			"several at once are one alert, the most urgent first": {
				config:  object{"target_kg": 80},
				weights: []string{"2026-01-20 07:00", "2026-01-21 07:00"}, kg: []float64{80, 82.5},
				want: []string{"weight warning weight_daily_change 2.5/1.4"},
			},
			"twice the week's change is critical": {
				config:  object{"target_kg": 80},
				weights: []string{"2026-01-20 07:00", "2026-01-21 07:00"}, kg: []float64{80, 84.6},
				want: []string{"weight critical weight_change 4.6/4.6"},
			},
			"a loss within the week": {
				weights: []string{"2026-01-20 07:00", "2026-01-27 07:05"}, kg: []float64{82.5, 80},
				want: []string{"weight warning weight_change -2.5/2.3"},
			},
			"own bounds": {
				config:  object{"daily_change_kg": 0.9, "over_target_kg": 1, "target_kg": 82},
				weights: []string{"2026-01-20 07:00", "2026-01-21 07:00", "2026-01-23 07:00"}, kg: []float64{81, 81.9, 83},
				want: []string{"weight warning weight_daily_change 0.9/0.9", "weight warning weight_over_target 1/1"},
			},
			"a bound that is off": {
				config:  object{"daily_change_kg": nil},
				weights: []string{"2026-01-20 07:00", "2026-01-21 07:00"}, kg: []float64{80, 82},
			},
		} {
			t.Run(zone+": "+name, func(t *testing.T) {
				c := newIngestingClinic(t)
				c.t = t
				patient := c.enroll(object{"time_zone": zone})
				if story.config != nil {
					c.request(authz.Nurse, "PUT", "/patients/"+patient+"/vital-config/", object{"reason": "Heart failure", "weight": story.config}).want(200)
				}
				for i, at := range story.weights {
					c.weigh(patient, story.kg[i], local(where, at)).want(201)
				}
				wantSame(t, "alerts", c.alertsRaised(patient), story.want)
			})
		}
	}
}

// The bounds of the weight rules are set, shown, logged and simulated like any other; a target belongs to one patient.
func TestStoryWeightBounds(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	path := "/patients/" + patient + "/vital-config/"
	c.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{
		"weight.daily_change_kg": 1.4, "weight.target_kg": nil, "weight.over_target_kg": 2.3, "weight.change_threshold_kg": 2.3, "weight.change_window_days": 7.0,
	})
	c.request(authz.Nurse, "PUT", path, object{"reason": "Dry weight", "weight": object{"target_kg": 80, "daily_change_kg": 1, "over_target_kg": nil}}).want(200).
		wantAt(object{"weight.daily_change_kg": 1.0, "weight.target_kg": 80.0, "weight.over_target_kg": nil, "weight.critical_change_kg": 4.6})
	wantSame(t, "change log", c.changes("patient_id", patient), []string{"weight_daily_change_kg 1.4→1", "weight_target_kg <nil>→80", "weight_over_target_kg 2.3→<nil>"})
	wantSame(t, "change log of a field", c.changes("field", "weight_target_kg"), []string{"weight_target_kg <nil>→80"})
	for field, wrong := range map[string][]float64{"daily_change_kg": {0.1, 51}, "target_kg": {19, 501}, "over_target_kg": {0, 101}} {
		for _, value := range wrong {
			c.request(authz.Nurse, "PUT", path, object{"reason": "x", "weight": object{field: value}}).wantFields("weight." + field)
		}
	}
	const practice = "/settings/default-thresholds/"
	c.request(authz.Admin, "PUT", practice, object{"reason": "x", "weight": object{"target_kg": 80}}).wantFields("weight.target_kg")
	c.request(authz.Admin, "PUT", practice, object{"reason": "x", "weight": object{"daily_change_kg": 2}}).want(200).wantAt(object{"weight.daily_change_kg": 2.0, "weight.target_kg": nil})
	c.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{"weight.daily_change_kg": 1.0})
	c.request(authz.Nurse, "PUT", path, object{"reason": "off", "weight": nil}).want(200).wantAt(object{"weight": nil})
	c.weigh(patient, 80, c.now.AddDate(0, 0, -1)).want(201)
	c.weigh(patient, 89, c.now).want(201).wantAt(object{"alert_triggered": false})
	c.request(authz.Nurse, "PUT", path, object{"reason": "on", "weight": object{"target_kg": 85, "over_target_kg": 3}}).want(200)

	simulated := func(body object) float64 {
		t.Helper()
		return c.request(authz.ClinicalManager, "POST", "/triage/simulate-thresholds/", body).want(200).at("simulated.total").(float64)
	}
	wide := object{"change_threshold_kg": 50, "daily_change_kg": 50, "over_target_kg": 50, "critical_change_kg": nil}
	with := func(field string, value float64) object {
		one := object{}
		for name, bound := range wide {
			one[name] = bound
		}
		one[field] = value
		return object{"patient_id": patient, "weight": one}
	}
	for _, try := range []struct {
		body object
		want float64
	}{
		{object{"patient_id": patient, "weight": wide}, 0},
		{with("daily_change_kg", 9), 1},
		{with("daily_change_kg", 9.01), 0},
		{with("over_target_kg", 4), 1},
		{with("over_target_kg", 4.01), 0},
		{with("change_threshold_kg", 9), 1},
	} {
		if got := simulated(try.body); got != try.want {
			t.Errorf("%v would have raised %v, want %v", try.body, got, try.want)
		}
	}
	c.request(authz.ClinicalManager, "POST", "/triage/simulate-thresholds/", object{"weight": object{"target_kg": 80}}).wantFields("weight.target_kg")
}

// An older weight arrives after a newer one: the findings equal those in order of measurement, and alert once.
func TestStoryOlderWeightComesLater(t *testing.T) {
	for name, story := range map[string]struct {
		kg    []float64     // in order of arrival; the last is the oldest, a day apart
		late  time.Duration // age of the newest
		want  []string
		stats []string
	}{
		"a gain overnight":           {[]float64{82, 80}, 0, []string{"weight warning weight_daily_change 2/1.4"}, nil},
		"a critical gain":            {[]float64{85, 80}, 0, []string{"weight critical weight_change 5/4.6"}, []string{"stat open system"}},
		"nothing":                    {[]float64{80.5, 80}, 0, nil, nil},
		"long ago":                   {[]float64{85, 80}, 49 * time.Hour, []string{"weight critical weight_change 5/4.6"}, nil},
		"by an unproven clock":       {[]float64{85, 80}, 49 * time.Hour, []string{"weight critical weight_change 5/4.6"}, []string{"stat open system"}},
		"one after the other":        {[]float64{82, 80, 81}, 0, []string{"weight warning weight_daily_change 2/1.4"}, nil},
		"it becomes critical":        {[]float64{82.5, 80, 77.5}, 0, []string{"weight warning weight_daily_change 2.5/1.4", "weight critical weight_change 5/4.6"}, []string{"stat open system"}},
		"a loss is a warning at all": {[]float64{75, 80}, 0, []string{"weight warning weight_change -5/2.3"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "GW-1"})
			if name == "long ago" { // its clock is right
				c.worked(patient, "W-0", "W-1")
			}
			newest := c.now.Add(-story.late - time.Minute)
			var first reply
			for i, kg := range story.kg {
				sent := c.sendWeightFrom(fmt.Sprint("W-", i), "GW-1", kg, newest.AddDate(0, 0, -i))
				if i == 0 {
					first = sent
				}
			}
			var newestRaised []string
			for _, raised := range c.queryRows(t, `SELECT type || ' ' || level || ' ' || parameter || ' ' || value || '/' || threshold FROM alerts
				WHERE observation = '`+first.at("id").(string)+`' ORDER BY id`) {
				newestRaised = append(newestRaised, strings.ReplaceAll(raised, ".0/", "/"))
			}
			wantSame(t, "raised by the newest of "+patient, newestRaised, story.want)
			wantSame(t, "escalations", c.statEscalations(t), story.stats)
			if late := c.queryRows(t, `SELECT id FROM alerts WHERE late = TRUE AND observation = '`+first.at("id").(string)+`'`); (len(late) > 0) != (story.late > 0) {
				t.Errorf("%d are late", len(late))
			}
			level := map[bool]string{true: "critical"}[len(story.stats) > 0]
			if got := c.score(patient)["risk_level"]; level != "" && got != level {
				t.Errorf("ranked %v", got)
			}
		})
	}
}
