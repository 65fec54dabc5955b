package billing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// history is a small practice to which everything happens that billing rests on, by whatever way it comes.
type history struct {
	app      core.App
	e        *billing.Engine // asked again and again
	writer   *observations.Writer
	readings *observations.Engine
	devices  *devices.Engine
	dice     *rand.Rand
	now      time.Time
	by       audit.Actor
	user     string
	people   []string
	stored   []string // observations
	numbered int
	last     []string // answers
}

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	h := &history{
		app: vigiltest.NewApp(t), dice: rand.New(rand.NewPCG(seed, 5)), now: time.Date(2026, 1, 27, 15, 0, 0, 0, time.UTC),
		by: audit.User(9, "biller@vigil.test", "data_monitor", audit.Origin{}), readings: observations.NewEngine(observations.Rules{PracticeZone: newYork, MaxFuture: time.Hour}),
		devices: devices.NewEngine(devices.Rules{PracticeZone: newYork}),
	}
	h.e = h.fresh()
	clock := func() time.Time { return h.now }
	h.user = vigiltest.User(t, h.app, "provider", vigiltest.Email("biller@vigil.test")).Id
	hooks.Bind(h.app, hooks.Engines{
		Observations: h.readings, Directory: patients.NewDirectory(), Zone: newYork, Clock: clock,
		Forget: func(string) {}, Wake: func() {}, WakeMailer: func() {}, Billing: h.e,
	})
	h.writer = observations.NewWriter(h.readings, clock, slog.New(slog.DiscardHandler), func([]observations.Outcome) {})
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { h.writer.Run(ctx, h.app) })
	t.Cleanup(func() { cancel(); run.Wait() })
	for i := range 8 {
		patient := vigiltest.Patient(t, h.app, dbx.Params{"icd10_codes": `["I10"]`, "time_zone": zones[i%len(zones)]})
		h.people = append(h.people, patient)
		h.must(t, h.exec(`INSERT INTO consents (patient, type, method, granted_at) VALUES ({:p}, 'rpm', 'written', {:at})`,
			dbx.Params{"p": patient, "at": h.ago(90)}))
		h.must(t, h.assign(patient, h.device(i), h.now.AddDate(0, 0, -80)))
		for day := range 20 + h.dice.IntN(50) {
			h.must(t, h.read(patient, h.device(i), h.now.AddDate(0, 0, -day)))
		}
		h.must(t, h.talk(patient))
	}
	return h
}

func (h *history) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fresh is an engine of the same settings that was never asked.
func (h *history) fresh() *billing.Engine {
	return billing.New(billing.Settings{Zone: newYork, Enable2026Codes: true, MaxUnits99458: 3, RequireConsent: true, EscalationTimeCap: time.Hour})
}

func (h *history) ago(days int) string { return collections.Instant(h.now.AddDate(0, 0, -days)) }

func (h *history) device(i int) string { return fmt.Sprintf("HIST-%d", i) }

func (h *history) anyDevice() string { return h.device(h.dice.IntN(len(h.people))) }

func (h *history) exec(sql string, params dbx.Params) error {
	_, err := h.app.NonconcurrentDB().NewQuery(sql).Bind(params).Execute()
	return err
}

// pick is the id of any row of a table, or "".
func (h *history) pick(table, where string) (id string) {
	var ids []string
	if err := h.app.DB().NewQuery("SELECT id FROM " + table + " WHERE " + where + " ORDER BY id").Column(&ids); err != nil || len(ids) == 0 {
		return ""
	}
	return ids[h.dice.IntN(len(ids))]
}

func (h *history) assign(patient, device string, since time.Time) error {
	_, err := h.devices.Assign(h.app, devices.Assignment{DeviceID: device, PatientID: patient, Type: "weight_scale", Kind: vitals.Weight, At: since}, h.by, h.now)
	return err
}

func (h *history) read(patient, device string, when time.Time) error {
	h.numbered++
	outcome, err := h.writer.Submit(context.Background(), observations.Submission{
		PatientID: patient, Source: vitals.SourceGateway, By: h.by, ReceivedAt: h.now,
		Reading: vitals.Reading{Kind: vitals.Weight, MeasuredAt: when, DeviceID: device}.With(vitals.WeightKg, 70+float64(h.numbered%5)),
	})
	if err == nil {
		h.stored = append(h.stored, outcome.Observation.ID)
	}
	return err
}

func (h *history) talk(patient string) error {
	started := h.now.Add(-time.Duration(h.dice.IntN(30*24*60)) * time.Minute)
	_, err := h.e.LogTime(h.app, h.user, billing.TimeDraft{
		PatientID: patient, Category: []string{"interactive", "interactive", "review", "care_management"}[h.dice.IntN(4)], ContactMethod: "phone",
		StartedAt: started, Seconds: 60 * (1 + h.dice.IntN(35)), EndedAt: started.Add(time.Hour), Notes: "Talked",
	}, h.by, h.now)
	return err
}

func (h *history) move(where string, move billing.Move) error {
	id := h.pick("billing_entries", where)
	if id == "" {
		return nil
	}
	_, err := h.e.Do(h.app, id, move, h.by, h.now)
	return err
}

// steps are what may happen to a patient, by what it is called.
func (h *history) steps() map[string]func(patient string) error {
	zone := func() string { return zones[h.dice.IntN(len(zones))] }
	return map[string]func(string) error{
		"a reading": func(p string) error {
			return h.read(p, h.heldBy(p), h.now.Add(-time.Duration(h.dice.IntN(48))*time.Hour))
		},
		"a late reading":      func(p string) error { return h.read(p, h.heldBy(p), h.now.AddDate(0, 0, -h.dice.IntN(60))) },
		"another's device":    func(p string) error { return h.read(p, h.anyDevice(), h.now.AddDate(0, 0, -h.dice.IntN(60))) },
		"days of readings":    h.wear,
		"a reading withdrawn": func(string) error { return h.withdraw() },
		"a typed reading":     h.typed,
		"time":                h.talk,
		"more time":           h.talk,
		"time changed": func(string) error {
			return h.exec(`UPDATE time_entries SET duration_seconds = {:s} WHERE id = {:id}`, h.of("time_entries", "s", 60*h.dice.IntN(50)))
		},
		"time deleted": func(string) error {
			return h.exec(`DELETE FROM time_entries WHERE id = {:id} AND billing_entry = '' AND {:s} = 0`, h.of("time_entries", "s", 0))
		},
		"time of another": func(p string) error {
			return h.exec(`UPDATE time_entries SET patient = {:p} WHERE id = {:id}`, h.of("time_entries", "p", p))
		},
		"a late consent": func(p string) error {
			return h.exec(`INSERT INTO consents (patient, type, method, granted_at) VALUES ({:p}, 'rpm', 'written', {:at})`, dbx.Params{"p": p, "at": h.ago(h.dice.IntN(60))})
		},
		"a consent revoked": func(string) error {
			return h.exec(`UPDATE consents SET revoked_at = {:at} WHERE id = {:id}`, h.of("consents", "at", h.ago(h.dice.IntN(40))))
		},
		"a consent of another": func(p string) error {
			return h.exec(`UPDATE consents SET patient = {:p} WHERE id = {:id}`, h.of("consents", "p", p))
		},
		"a consent removed": func(string) error {
			return h.exec(`DELETE FROM consents WHERE id = {:id} AND {:s} = 0`, h.of("consents", "s", 0))
		},
		"a device given": func(p string) error { return h.assign(p, h.anyDevice(), h.now.AddDate(0, 0, -h.dice.IntN(20))) },
		"a device taken back": func(string) error {
			_, err := devices.Unassign(h.app, h.anyDevice(), "Broken", h.by, h.now)
			return err
		},
		"an assignment earlier": func(string) error {
			return h.exec(`UPDATE device_assignments SET assigned_at = {:at} WHERE id = {:id}`, h.of("device_assignments", "at", h.ago(85)))
		},
		"an assignment removed": func(string) error {
			return h.exec(`DELETE FROM device_assignments WHERE id = {:id} AND unassigned_at != '' AND {:s} = 0`, h.of("device_assignments", "s", 0))
		},
		"a set-up": h.setUp,
		"a device registered": func(string) error {
			return h.exec(`UPDATE devices SET device_id = device_id || {:s} WHERE id = {:id}`, h.of("devices", "s", fmt.Sprint("x", h.dice.IntN(1_000_000))))
		},
		"archived":   func(p string) error { _, err := patients.Archive(h.app, p, "Moved away", h.by, h.now); return err },
		"back again": func(p string) error { _, err := patients.Unarchive(h.app, p, h.by, h.now); return err },
		"deleted":    func(p string) error { return patients.Delete(h.app, p, h.by, h.now) },
		"restored": func(string) error {
			gone := h.pick("patients", "deleted_at != ''")
			if gone == "" {
				return nil
			}
			_, err := patients.Restore(h.app, gone, h.by, h.now)
			return err
		},
		"a diagnosis": func(p string) error {
			return h.exec(`UPDATE patients SET icd10_codes = {:c} WHERE id = {:p}`, dbx.Params{"p": p, "c": []string{`["I10"]`, "[]"}[h.dice.IntN(2)]})
		},
		"a payer of theirs": func(p string) error {
			return h.exec(`UPDATE patients SET insurance_payer = {:n} WHERE id = {:p}`, dbx.Params{"p": p, "n": h.dice.IntN(3)})
		},
		"a provider": func(p string) error {
			return h.exec(`UPDATE patients SET primary_provider = {:u} WHERE id = {:p}`, dbx.Params{"p": p, "u": []string{"", h.user}[h.dice.IntN(2)]})
		},
		"another time zone": func(p string) error { return h.changeZone(p, zone()) },
		"a new payer": func(string) error {
			return h.exec(`INSERT OR REPLACE INTO payers (id, name, payer_code, is_active) VALUES ({:id}, 'P', {:id}, TRUE)`, dbx.Params{"id": fmt.Sprintf("%015d", 1+h.dice.IntN(2))})
		},
		"a rate":     h.rate,
		"a fee list": func(string) error { return h.fees() },
		"the shipped fees": func(string) error {
			list, _ := billing.ShippedFees("2026")
			_, err := billing.ImportFees(h.app, list, h.by, h.now)
			return err
		},
		"a fee removed": func(string) error {
			return h.exec(`DELETE FROM fee_schedule WHERE id = {:id} AND {:s} = 0`, h.of("fee_schedule", "s", 0))
		},
		"a device run": func(string) error { return h.run(billing.DeviceJob) },
		"a run":        func(string) error { return h.run(billing.AllJobs) },
		"a review": func(string) error {
			return h.move("lifecycle_status = 'pending_review'", h.e.Review(h.by, "", "Looked at", true, h.now))
		},
		"a submission": func(string) error { return h.move("lifecycle_status = 'reviewed'", h.e.Submit("", h.now, h.now)) },
		"a void": func(string) error {
			return h.move("lifecycle_status IN ('pending_review', 'reviewed')", h.e.Void("Not worn", h.now))
		},
		"an entry by hand": h.byHand,
		"an entry removed": func(string) error {
			return h.exec(`DELETE FROM billing_entries WHERE id = {:id} AND {:s} = 0`, h.of("billing_entries", "s", 0))
		},
		"days that are wrong": h.spoil,
		"a night":             h.night,
		"somebody new":        func(string) error { return h.enrol() },
		"a day passes":        func(string) error { h.now = h.now.AddDate(0, 0, 1); return nil },
		"some days pass":      func(string) error { h.now = h.now.Add(time.Duration(1+h.dice.IntN(9*24)) * time.Hour); return nil },
		"a refresh":           func(string) error { return h.e.RefreshForTest(h.app, h.now) },
		"nothing of money": func(p string) error {
			return audit.Append(h.app, audit.Entry{Event: audit.Login, Actor: h.by, ResourceType: "User", ResourceID: "1"}, h.now)
		},
	}
}

// of is any row of a table, and another parameter.
func (h *history) of(table, name string, value any) dbx.Params {
	return dbx.Params{"id": h.pick(table, "TRUE"), name: value}
}

// heldBy is a device that a patient holds, or "".
func (h *history) heldBy(patient string) (device string) {
	_ = h.app.DB().NewQuery(`SELECT COALESCE(MIN(device_id), '') FROM device_assignments WHERE patient = {:p} AND unassigned_at = ''`).Bind(dbx.Params{"p": patient}).Row(&device)
	return device
}

// wear has a patient send readings day after day with a device that they hold.
func (h *history) wear(patient string) (err error) {
	device := h.heldBy(patient)
	for day := range 4 + h.dice.IntN(16) {
		var refused *fault.Error
		if failed := h.read(patient, device, h.now.AddDate(0, 0, -day)); !errors.As(failed, &refused) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

func (h *history) withdraw() error {
	_, err := h.readings.Withdraw(h.app, h.stored[h.dice.IntN(len(h.stored))], "Another's", h.by, h.now)
	return err
}

func (h *history) typed(patient string) error {
	h.numbered++
	_, err := h.writer.Submit(context.Background(), observations.Submission{
		PatientID: patient, Source: vitals.SourcePortal, Origin: vitals.OriginPatient, By: h.by, ReceivedAt: h.now,
		Reading: vitals.Reading{Kind: vitals.Weight, MeasuredAt: h.now.Add(-time.Hour)}.With(vitals.WeightKg, 71),
	})
	return err
}

// setUp is that of whoever holds a device; said again, it takes the set-up from whoever held it before.
func (h *history) setUp(string) error {
	_, err := devices.CompleteSetUp(h.app, h.anyDevice(), devices.SetUp{CompletedAt: h.now.AddDate(0, 0, -h.dice.IntN(3))}, h.by, h.now)
	return err
}

func (h *history) changeZone(patient, zone string) error {
	return h.app.RunInTransaction(func(tx core.App) error {
		if _, err := tx.NonconcurrentDB().NewQuery(`UPDATE patients SET time_zone = {:z} WHERE id = {:p}`).Bind(dbx.Params{"z": zone, "p": patient}).Execute(); err != nil {
			return err
		}
		return observations.RecountDays(tx, patient, collections.Zone(zone, newYork), time.Time{})
	})
}

func (h *history) rate(string) error {
	return h.exec(`INSERT OR REPLACE INTO payer_rates (payer, cpt_code, rate_cents, effective_date) VALUES ({:p}, {:c}, {:r}, {:d})`, dbx.Params{
		"p": fmt.Sprintf("%015d", 1+h.dice.IntN(2)), "c": []string{"99454", "99457"}[h.dice.IntN(2)], "r": 4000 + h.dice.IntN(2000), "d": "2026-01-01",
	})
}

func (h *history) fees() error {
	list := fmt.Sprintf("cpt_code,locality,effective_date,charge,expected,source\n99454,,2026-01-01,60,%d,x\n99457,,2026-01-01,60,%d,x\n", 40+h.dice.IntN(10), 40+h.dice.IntN(10))
	_, err := billing.ImportFees(h.app, []byte(list), h.by, h.now)
	return err
}

func (h *history) run(job billing.Job) error {
	_, err := h.e.Run(context.Background(), h.app, job, h.by, func() time.Time { return h.now })
	return err
}

// byHand bills a month of time of a patient as somebody would who knows better.
func (h *history) byHand(patient string) error {
	h.numbered++
	month := h.now.AddDate(0, -h.dice.IntN(2), 0).Format("2006-01")
	return h.exec(`INSERT INTO billing_entries (id, claim_id, patient, cpt_code, service_date, units, amount_cents, lifecycle_status, source, billing_period_start, billing_period_end)
		VALUES ({:id}, 'BY-HAND-' || {:n}, {:p}, {:c}, {:d}, 1, 4000, 'pending_review', 'manual', {:d}, {:e})`, dbx.Params{
		"id": fmt.Sprintf("40000000-0000-7000-8000-%012d", h.numbered), "n": h.numbered, "p": patient, "c": []string{"99454", "99457", "99453"}[h.dice.IntN(3)], "d": month + "-01", "e": month + "-28",
	})
}

// spoil is a fault that nobody was told of, in the days of somebody about whom something else is told.
func (h *history) spoil(patient string) error {
	return errors.Join(
		h.exec(`DELETE FROM reading_days WHERE patient = {:p} AND day > {:d}`, dbx.Params{"p": patient, "d": h.now.AddDate(0, 0, -h.dice.IntN(30)).Format(time.DateOnly)}),
		h.exec(`UPDATE patients SET primary_provider = iif(primary_provider = '', {:u}, '') WHERE id = {:p}`, dbx.Params{"p": patient, "u": h.user}))
}

// night finds it.
func (h *history) night(string) error {
	_, _, err := h.readings.Recount(context.Background(), h.app)
	return err
}

func (h *history) enrol() error {
	h.numbered++
	id := fmt.Sprintf("%08x-0000-7000-8000-%012d", h.dice.Uint32(), h.numbered) // before, between or behind the others
	if err := h.exec(`INSERT INTO patients (id, mrn, active, gender, icd10_codes, time_zone) VALUES ({:p}, {:p}, TRUE, 'other', '["I10"]', 'UTC')`, dbx.Params{"p": id}); err != nil {
		return err
	}
	h.people = append(h.people, id)
	return errors.Join(h.assign(id, h.device(len(h.people)-1), h.now.AddDate(0, 0, -40)), h.wear(id))
}
