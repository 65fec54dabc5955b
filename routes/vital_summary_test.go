package routes_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// storedReading inserts a reading directly into the table.
func (c *clinic) storedReading(patient, kind string, at time.Time, values dbx.Params) {
	c.t.Helper()
	row := dbx.Params{
		"id": collections.NewUUID(), "patient": patient, "observation_type": kind, "measured_at": collections.FormatInstant(at), "status": "final",
		"source": "gateway", "origin": "device", "created_at": collections.FormatInstant(c.now), "updated_at": collections.FormatInstant(c.now),
	}
	for name, value := range values {
		row[name] = value
	}
	c.insert(collections.Observations, row)
}

func (c *clinic) summary(patient string, days int) object {
	c.t.Helper()
	for _, period := range c.request(authz.Nurse, "GET", "/patients/"+patient+"/vitals/summary/", nil).want(200).at("periods").([]any) {
		if period.(object)["days"] == float64(days) {
			return period.(object)
		}
	}
	c.t.Fatalf("no period of %d days", days)
	return nil
}

func wantMembers(t testing.TB, what string, got object, want object) {
	t.Helper()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: %s is %v, want %v", what, name, got[name], value)
		}
	}
}

// A week across the change to daylight saving time, computed by hand: sources, morning and evening to the minute, and
// exclusions.
func TestStoryVitalSummary(t *testing.T) {
	c := newClinic(t)
	c.now = time.Date(2026, 3, 11, 16, 0, 0, 0, time.UTC) // noon in New York, three days after the change
	patient := c.enroll(object{"time_zone": "America/New_York"})
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 3, day, hour, minute, 0, 0, newYork) }
	pressure := func(at time.Time, systolic, diastolic float64, more dbx.Params) {
		values := dbx.Params{"systolic": systolic, "diastolic": diastolic}
		for name, value := range more {
			values[name] = value
		}
		c.storedReading(patient, "blood_pressure", at, values)
	}
	pressure(at(5, 0, 0), 120, 70, dbx.Params{"pulse": 60.0})                                    // the first moment of the seven days
	pressure(at(4, 23, 59), 199, 119, nil)                                                       // a minute too early
	pressure(at(8, 4, 0), 131, 81, dbx.Params{"pulse": 63.0})                                    // morning begins, in daylight saving time
	pressure(at(8, 11, 59), 132, 90, dbx.Params{"origin": "staff", "source": "api"})             // morning ends; diastolic at the bound
	pressure(at(8, 12, 0), 140, 80, dbx.Params{"origin": "patient", "source": "patient_portal"}) // neither; systolic at the bound
	pressure(at(9, 15, 59), 128, 78, nil)
	pressure(at(9, 16, 0), 126, 76, nil)                                         // evening begins
	pressure(at(10, 23, 59), 125, 75, dbx.Params{"origin": "", "source": "api"}) // evening ends; an old row that a person typed
	pressure(at(10, 3, 59), 122, 72, nil)                                        // not yet morning
	pressure(at(9, 9, 0), 250, 150, dbx.Params{"status": "entered_in_error"})
	pressure(at(9, 9, 1), 250, 150, dbx.Params{"review_state": "suspect"})
	pressure(at(9, 9, 2), 130, 80, dbx.Params{"review_state": "confirmed"})
	c.storedReading(patient, "pulse_oximetry", at(10, 8, 0), dbx.Params{"spo2": 95.0, "pulse": 64.0})
	c.storedReading(patient, "pulse_oximetry", at(10, 9, 0), dbx.Params{"spo2": 92.0})
	c.storedReading(patient, "weight", at(6, 8, 0), dbx.Params{"weight_kg": 82.25})
	c.storedReading(patient, "weight", at(7, 8, 0), dbx.Params{"weight_kg": 83.9})
	c.storedReading(patient, "weight", at(9, 8, 0), dbx.Params{"weight_kg": 81.75})

	week := c.summary(patient, 7)
	bp := week["blood_pressure"].(object)
	// 120+131+132+140+128+126+125+122+130 = 1154, divided by 9 is 128.22; 70+81+90+80+78+76+75+72+80 = 702, divided by 9
	// is 78.
	wantMembers(t, "pressure", bp, object{
		"readings": 9.0, "days": 4.0, "mean_systolic": 128.2, "mean_diastolic": 78.0, "min_systolic": 120.0, "max_systolic": 140.0,
		"by_device": 6.0, "typed": 3.0, "in_range_percent": 77.8,
	})
	wantMembers(t, "morning", bp["morning"].(object), object{"readings": 3.0, "mean_systolic": 131.0, "mean_diastolic": 83.7})
	wantMembers(t, "evening", bp["evening"].(object), object{"readings": 2.0, "mean_systolic": 125.5, "mean_diastolic": 75.5})
	wantMembers(t, "pulse", week["pulse"].(object), object{"readings": 3.0, "days": 3.0, "mean": 62.3, "min": 60.0, "max": 64.0, "in_range_percent": 100.0})
	wantMembers(t, "oximetry", week["pulse_oximetry"].(object), object{"readings": 2.0, "mean": 93.5, "in_range_percent": 50.0, "by_device": 2.0})
	// 82.25+83.9+81.75 = 247.9, divided by 3 is 82.63.
	wantMembers(t, "weight", week["weight"].(object), object{"readings": 3.0, "mean": 82.6, "min": 81.75, "max": 83.9, "change_kg": -0.5, "in_range_percent": nil})
	wantMembers(t, "glucose", week["blood_glucose"].(object), object{"readings": 0.0, "days": 0.0, "mean": nil, "min": nil, "max": nil, "in_range_percent": nil})
	wantMembers(t, "month", c.summary(patient, 30)["blood_pressure"].(object), object{"readings": 10.0, "days": 5.0, "max_systolic": 199.0})

	// The current bounds count, also for earlier readings.
	c.request(authz.Provider, "PUT", "/patients/"+patient+"/vital-config/", object{"blood_pressure": object{"systolic_high": 130}, "reason": "after a stroke"}).want(200)
	wantMembers(t, "tighter", c.summary(patient, 7)["blood_pressure"].(object), object{"in_range_percent": 55.6})
	c.request(authz.Provider, "PUT", "/patients/"+patient+"/vital-config/", object{"blood_pressure": nil, "reason": "palliative"}).want(200)
	wantMembers(t, "no bounds", c.summary(patient, 7)["blood_pressure"].(object), object{"in_range_percent": nil})

	path := "/patients/" + patient + "/vitals/summary/"
	c.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{"patient_id": patient, "as_of": "2026-03-11T16:00:00Z"})
	c.request(authz.Nurse, "GET", "/patients/"+unknownPatient+"/vitals/summary/", nil).want(404)
	owner, stranger := vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(patient)), vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(c.enroll(nil)))
	c.requestAs(owner, "GET", path, nil).want(200)
	c.requestAs(stranger, "GET", path, nil).want(404)
}

// Halves round up, also where a binary fraction would round down.
func TestSummaryRoundsHalfUp(t *testing.T) {
	for want, values := range map[float64][]float64{
		36.7: {36.6, 36.7}, 37.1: {37.05}, 37.0: {37.04}, 36.9: {36.8, 36.9}, 98.3: {98, 98, 99}, 37.7: {37.65}, 95.7: {95, 96, 96},
	} {
		c := newClinic(t)
		patient := c.enroll(nil)
		kind, column := "body_temperature", "temperature_c"
		if values[0] > 50 {
			kind, column = "pulse_oximetry", "spo2"
		}
		for i, value := range values {
			c.storedReading(patient, kind, c.now.Add(-time.Duration(i+1)*time.Minute), dbx.Params{column: value})
		}
		if got := c.summary(patient, 7)[kind].(object)["mean"]; got != want {
			t.Errorf("mean of %v is %v, want %v", values, got, want)
		}
	}
}

// In every zone, season and hour, the periods, parts of the day, days and means equal those of an oracle that uses only
// the wall clock and exact fractions.
func TestSummaryAgainstAnOracle(t *testing.T) {
	random := rand.New(rand.NewPCG(18, 18))
	for _, place := range []struct {
		zone string
		now  time.Time
	}{
		{"America/New_York", time.Date(2026, 3, 9, 3, 30, 0, 0, time.UTC)},
		{"America/New_York", time.Date(2026, 11, 2, 4, 59, 59, 0, time.UTC)},
		{"Australia/Lord_Howe", time.Date(2026, 4, 5, 1, 0, 0, 0, time.UTC)},
		{"Europe/Berlin", time.Date(2026, 3, 29, 22, 30, 0, 0, time.UTC)},
		{"Africa/Cairo", time.Date(2026, 4, 24, 12, 0, 0, 0, time.UTC)}, // midnight is skipped there that day
	} {
		zone, err := time.LoadLocation(place.zone)
		if err != nil {
			t.Fatal(err)
		}
		c := newClinic(t)
		c.now = place.now
		patient := c.enroll(object{"time_zone": place.zone})
		type reading struct {
			at    time.Time
			value float64
		}
		var readings []reading
		for range 150 {
			r := reading{place.now.Add(-time.Duration(random.Int64N(int64(9 * 24 * time.Hour)))).Truncate(time.Second), float64(8500+random.IntN(1500)) / 100}
			readings = append(readings, r)
			c.storedReading(patient, "pulse_oximetry", r.at, dbx.Params{"spo2": r.value})
		}
		week := c.summary(patient, 7)["pulse_oximetry"].(object)
		sums, counts, days := map[string]*big.Rat{}, map[string]int{}, map[string]bool{}
		today := place.now.In(zone)
		for _, r := range readings {
			local := r.at.In(zone)
			y, m, d := local.Date()
			ty, tm, td := today.Date()
			if age := time.Date(ty, tm, td, 0, 0, 0, 0, time.UTC).Sub(time.Date(y, m, d, 0, 0, 0, 0, time.UTC)) / (24 * time.Hour); age > 6 {
				continue
			}
			days[local.Format(time.DateOnly)] = true
			parts := []string{"all"}
			if clock := local.Format("15:04"); clock >= "04:00" && clock <= "11:59" {
				parts = append(parts, "morning")
			} else if clock >= "16:00" {
				parts = append(parts, "evening")
			}
			for _, part := range parts {
				if sums[part] == nil {
					sums[part] = new(big.Rat)
				}
				exact, _ := new(big.Rat).SetString(fmt.Sprintf("%.2f", r.value))
				sums[part].Add(sums[part], exact)
				counts[part]++
			}
		}
		for part, n := range counts {
			tenths := new(big.Rat).Mul(sums[part], big.NewRat(10, int64(n)))
			tenths.Add(tenths, big.NewRat(1, 2))
			want, _ := new(big.Rat).SetFrac(new(big.Int).Div(tenths.Num(), tenths.Denom()), big.NewInt(10)).Float64()
			got := week
			if part != "all" {
				got = week[part].(object)
			}
			wantMembers(t, place.zone+" "+part, got, object{"readings": float64(n), "mean": want})
		}
		wantMembers(t, place.zone, week, object{"days": float64(len(days))})
	}
}
