package patients_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// benchPatients is how many patients the benchmarks search.
const benchPatients = 100_000

var (
	firstParts = []string{"Al", "Bea", "Chris", "Dor", "El", "Fran", "Georg", "Han", "Is", "Jo", "Kath", "Lu", "Mar", "Nat", "Ol", "Pat", "Ro", "Ste", "Tere", "Wal"}
	firstEnds  = []string{"a", "bert", "drea", "fried", "ia", "ine", "is", "kus", "len", "mund", "na", "phine", "ric", "sa", "ton", "vin"}
	lastParts  = []string{"Ander", "Black", "Carpen", "Dono", "Ever", "Fitz", "Green", "Har", "Ivan", "Johan", "Kowal", "Linden", "Mac", "Nakamu", "Oster", "Peter", "Quin", "Richard", "Sander", "Thom"}
	lastEnds   = []string{"baum", "dottir", "field", "gard", "ham", "kowski", "land", "man", "nen", "ova", "ra", "ski", "son", "ter", "ton", "van", "well", "wood", "é", "øy"}
)

func pick(random *rand.Rand, parts ...[]string) (name string) {
	for _, list := range parts {
		name += list[random.IntN(len(list))]
	}
	return name
}

// crowd stores so many patients by SQL, sealed as the service seals them.
func crowd(b *testing.B, app core.App, count int) {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	err := app.RunInTransaction(func(tx core.App) error {
		for i := range count {
			row := dbx.Params{
				"id": collections.NewUUID(), "mrn": fmt.Sprintf("MRN-%08d", i+1), "gender": "other", "active": i%20 != 0, "version": 1,
				"created_at": collections.FormatInstant(vigiltest.Clock.Add(time.Duration(i) * time.Second)),
			}
			for column, plain := range map[string]string{
				"first_name": pick(random, firstParts, firstEnds), "last_name": pick(random, lastParts, lastEnds, []string{"", "", "", "-Smith"}),
				"date_of_birth": fmt.Sprintf("19%02d-0%d-1%d", random.IntN(100), 1+random.IntN(9), random.IntN(10)), "phone": "+1 (555) 010-0199",
			} {
				sealed, err := collections.Seal(plain, "patients."+column, row["id"].(string))
				if err != nil {
					return err
				}
				row[column] = sealed
			}
			if _, err := tx.DB().Insert(collections.Patients, row).Execute(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// report gives the median and the slow end of single calls.
func report(b *testing.B, call func(n int)) {
	b.Helper()
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		begun := time.Now()
		call(n)
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	for name, at := range map[string]int{"p50-ms": len(took) / 2, "p99-ms": len(took) * 99 / 100} {
		b.ReportMetric(float64(took[at].Microseconds())/1000, name)
	}
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkPatients measures the directory and the list over a hundred thousand patients.
func BenchmarkPatients(b *testing.B) {
	app := vigiltest.NewApp(b)
	crowd(b, app, benchPatients)

	b.Run("build directory", func(b *testing.B) {
		for b.Loop() {
			directory := patients.NewDirectory()
			if err := directory.Build(app); err != nil {
				b.Fatal(err)
			}
			directory.Close()
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/build")
	})

	before := heap()
	directory := patients.NewDirectory()
	defer directory.Close()
	if err := directory.Build(app); err != nil {
		b.Fatal(err)
	}
	perPatient := float64(heap()-before) / benchPatients

	list := func(b *testing.B, find patients.DirectoryQuery) {
		ids, _ := directory.Find(find)
		if len(ids) == 0 {
			b.Fatalf("%+v finds no patient", find)
		}
	}
	b.Run("search", func(b *testing.B) {
		searches := []string{"son", "an", "nakamu", "o wood", "MRN-0000", "mrn-00099999", "é", "smith bea", "johan", "ia kowski"}
		report(b, func(n int) { list(b, patients.DirectoryQuery{Search: searches[n%len(searches)], Limit: 20}) })
		b.ReportMetric(perPatient, "bytes/patient")
	})
	b.Run("search without a hit", func(b *testing.B) {
		report(b, func(int) { directory.Find(patients.DirectoryQuery{Search: "zzyzx", Limit: 20}) })
	})
	for name, order := range map[string]patients.ListOrder{"by last name": patients.ByLastName, "by creation": patients.ByCreationDescending} {
		b.Run("page "+name, func(b *testing.B) {
			report(b, func(n int) { list(b, patients.DirectoryQuery{Order: order, Offset: n % 4000 * 20, Limit: 20}) })
		})
	}
	b.Run("page with all fields", func(b *testing.B) { // as the endpoint returns it, without the audit entry
		report(b, func(n int) {
			page, _, err := patients.List(app, directory, patients.Query{Search: "son", Offset: n % 100 * 20, Limit: 20})
			if err != nil || len(page) != 20 {
				b.Fatal(len(page), err)
			}
			for _, p := range page {
				if _, err := patients.NewView(p, authz.Nurse, vigiltest.Clock); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("refresh after a change", func(b *testing.B) {
		ids, _ := directory.Find(patients.DirectoryQuery{Limit: 1000})
		report(b, func(n int) {
			if err := directory.Refresh(app, ids[n%len(ids)]); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// BenchmarkCreatePatient measures creating one patient after the other, with hooks, triage row and audit entry, each on disk.
func BenchmarkCreatePatient(b *testing.B) {
	app := newPatientsApp(b)
	if _, err := app.NonconcurrentDB().NewQuery("PRAGMA synchronous = FULL").Execute(); err != nil { // as the service has it
		b.Fatal(err)
	}
	for b.Loop() {
		create(b, app, nil)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "patients/s")
}
