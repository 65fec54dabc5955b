package worklist_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/worklist"
)

// room is a practice of whose patients the MRN is asked; the answers count how often anybody was asked about.
type room struct {
	t     *testing.T
	app   core.App
	k     *worklist.Answers[string]
	key   string
	lock  sync.Mutex // of asked
	asked map[string]int
	fail  error
}

func newRoom(t *testing.T, patients int) *room {
	t.Helper()
	r := &room{t: t, app: vigiltest.NewApp(t), k: worklist.New[string](&worklist.Feed{}), asked: map[string]int{}}
	for i := range patients {
		r.exec(`INSERT INTO patients (id, mrn, active, gender) VALUES ({:id}, {:mrn}, TRUE, 'other')`, dbx.Params{"id": id(i), "mrn": fmt.Sprint("M", i)})
	}
	return r
}

func id(i int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", i) }

func (r *room) exec(sql string, params dbx.Params) {
	r.t.Helper()
	if _, err := r.app.NonconcurrentDB().NewQuery(sql).Bind(params).Execute(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *room) question() worklist.Question[string] {
	return worklist.Question[string]{
		Name: "asking for numbers", Key: r.key,
		Whom: enrolled,
		Answer: func(app core.App, ids []string) (map[string]string, error) {
			if r.fail != nil {
				return nil, r.fail
			}
			answers := map[string]string{}
			for _, one := range ids {
				r.lock.Lock()
				r.asked[one]++
				r.lock.Unlock()
				var mrn string
				if err := app.DB().NewQuery("SELECT mrn FROM patients WHERE id = {:id}").Bind(dbx.Params{"id": one}).Row(&mrn); err != nil {
					return nil, err
				}
				answers[one] = mrn
			}
			return answers, nil
		},
	}
}

// enrolled are the next of those who are.
func enrolled(app core.App, named []string, after string, limit int) (ids []string, err error) {
	q := app.DB().Select("id").From("patients").Where(dbx.NewExp("active AND id > {:after}", dbx.Params{"after": after})).OrderBy("id").Limit(int64(limit))
	if named != nil {
		q.AndWhere(collections.AnyOf("id", named))
	}
	return ids, q.Column(&ids)
}

// answers are all, and about how many patients was asked for them.
func (r *room) answers() (all map[string]string, asked int) {
	r.t.Helper()
	all = map[string]string{}
	clear(r.asked)
	err := r.k.Ask(r.app, r.question(), func(a worklist.Snapshot[string]) {
		for patient, mrn := range a.Of {
			all[patient.Value()] = mrn
		}
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all, len(r.asked)
}

func (r *room) want(what string, patients, asked int) {
	r.t.Helper()
	all, n := r.answers()
	fresh, err := worklist.Fresh(r.app, r.question())
	if err != nil {
		r.t.Fatal(err)
	}
	same := len(all) == len(fresh)
	for patient, mrn := range fresh {
		same = same && all[patient.Value()] == mrn
	}
	if len(all) != patients || n != asked || !same {
		r.t.Errorf("%s: %d are known and %d were asked about, not %d and %d; as if nobody had asked before: %t", what, len(all), n, patients, asked, same)
	}
}

// Only whoever something may have touched is asked about anew.
func TestOnlyTheTouched(t *testing.T) {
	r := newRoom(t, 2*worklist.Chunk+3)
	n := 2*worklist.Chunk + 3
	r.want("at first", n, n)
	r.want("again", n, 0)
	r.exec("UPDATE patients SET mrn = 'X' WHERE id = {:id}", dbx.Params{"id": id(7)})
	r.want("one was changed", n, 1)
	r.exec("UPDATE patients SET active = FALSE WHERE id IN ({:a}, {:b})", dbx.Params{"a": id(7), "b": id(9)})
	r.want("two left", n-2, 0) // they are not among those who are asked about
	r.exec("UPDATE patients SET active = TRUE WHERE id = {:a}", dbx.Params{"a": id(9)})
	r.want("one came back", n-1, 1)
	r.exec(`INSERT INTO patients (id, mrn, active, gender) VALUES ('00000000-0000-6000-8000-000000000000', 'first', TRUE, 'other'), ('f0000000-0000-6000-8000-000000000000', 'last', TRUE, 'other')`, nil)
	r.want("two are new", n+1, 2)
	r.exec("DELETE FROM patients WHERE mrn IN ('first', 'last')", nil)
	r.want("and gone", n-1, 0)
	r.exec("INSERT INTO alerts (patient, type, level, status) VALUES ({:id}, 'x', 'info', 'open')", dbx.Params{"id": id(3)})
	r.want("an alert touches nobody", n-1, 0)
	r.key = "another day"
	r.want("under another key", n-1, n-1)
}

// What is not understood touches everybody, and so does a place among the changes that is not there any more.
func TestEverybodyIsTouched(t *testing.T) {
	const n = 5
	r := newRoom(t, n)
	r.want("at first", n, n)
	for _, test := range []struct{ what, sql string }{
		{"an unknown type", `INSERT INTO changes (type, record, change, event, patient, at) VALUES ('weather', '1', 'updated', '', '` + id(1) + `', 'x')`},
		{"an unknown table", `INSERT INTO changes (type, record, change, event, patient, at) VALUES ('', 'weather', 'updated', '', '` + id(1) + `', 'x')`},
		{"a payer", `INSERT INTO payers (id, name, payer_code) VALUES ('000000000000001', 'P', 'P')`},
		{"a time entry of nobody", `INSERT INTO changes (type, record, change, event, patient, at) VALUES ('time_entry', '1', 'updated', '', '', 'x')`},
		{"the last change was removed, and others came", `INSERT INTO changes (type, record, change, event, patient, at) VALUES ('alert', '1', 'updated', '', '', 'x');
			DELETE FROM changes WHERE seq < (SELECT MAX(seq) FROM changes)`},
		{"another past", `DELETE FROM changes WHERE seq = (SELECT MAX(seq) FROM changes); INSERT INTO changes (type, record, change, event, patient, at) VALUES ('alert', '2', 'updated', '', '', 'y')`},
		{"an earlier end", `DELETE FROM changes`},
		{"a first change", `INSERT INTO changes (seq, type, record, change, event, patient, at) VALUES (1, 'alert', '1', 'updated', '', '', 'x')`},
		{"far behind", `INSERT INTO changes (seq, type, record, change, event, patient, at) VALUES (300000, 'alert', '1', 'updated', '', '', 'x')`},
	} {
		for statement := range strings.SplitSeq(test.sql, ";") {
			r.exec(statement, nil)
		}
		if test.what == "an earlier end" {
			if err := r.k.Ask(r.app, r.question(), func(worklist.Snapshot[string]) {}); err == nil {
				t.Error("without any change nobody can say what happened, and there is an answer")
			}
			continue
		}
		r.want(test.what, n, n)
		r.want(test.what+", again", n, 0)
	}
}

// What fails leaves what was known, and is asked about again.
func TestFailureLeavesNothingOut(t *testing.T) {
	const n = 5
	r := newRoom(t, n)
	r.want("at first", n, n)
	r.exec("UPDATE patients SET mrn = 'X' WHERE id = {:id}", dbx.Params{"id": id(2)})
	r.fail = errors.New("no luck")
	if err := r.k.Ask(r.app, r.question(), func(worklist.Snapshot[string]) { t.Error("an answer") }); !errors.Is(err, r.fail) {
		t.Errorf("asked, it says %v", err)
	}
	if _, err := r.k.Step(r.app, r.question()); !errors.Is(err, r.fail) {
		t.Errorf("brought up to date, it says %v", err)
	}
	r.fail = nil
	r.want("then", n, 1)
	q := r.question()
	q.Key, q.Answer = "panics", func(core.App, []string) (map[string]string, error) { panic("Mummel") }
	err := r.k.Ask(r.app, q, func(worklist.Snapshot[string]) { t.Error("an answer") })
	if err == nil || !strings.Contains(err.Error(), "panicked (string)") || strings.Contains(err.Error(), "Mummel") {
		t.Errorf("a panic is %v", err)
	}
}

// Step by step everybody is asked about, and whoever was changed meanwhile a second time.
func TestSteps(t *testing.T) {
	n := 2*worklist.Chunk + 3
	r := newRoom(t, n)
	steps := 0
	for more := true; more; steps++ {
		var err error
		if more, err = r.k.Step(r.app, r.question()); err != nil {
			t.Fatal(err)
		}
		switch steps {
		case 0: // one who was asked about, and one who has their turn
			r.exec("UPDATE patients SET mrn = 'X' || mrn WHERE id IN ({:a}, {:b})", dbx.Params{"a": id(1), "b": id(2 * worklist.Chunk)})
		case 2:
			r.exec("UPDATE patients SET mrn = 'Y' || mrn WHERE id = {:a}", dbx.Params{"a": id(2)})
		}
	}
	if steps < 4 || r.asked[id(1)] != 2 || r.asked[id(2)] != 2 || r.asked[id(2*worklist.Chunk)] != 1 || r.asked[id(3)] != 1 {
		t.Errorf("in %d steps they were asked about %d, %d, %d and %d times", steps, r.asked[id(1)], r.asked[id(2)], r.asked[id(2*worklist.Chunk)], r.asked[id(3)])
	}
	r.want("after that", n, 0)
}

// A recount finds what nobody was told of: another answer, somebody too many, somebody too few; and nothing that was told meanwhile.
func TestRecount(t *testing.T) {
	n := 2*worklist.Chunk + 3
	r := newRoom(t, n)
	untold := func(sql string) {
		var last int64
		if err := r.app.DB().NewQuery("SELECT MAX(seq) FROM changes").Row(&last); err != nil {
			t.Fatal(err)
		}
		r.exec(sql, nil)
		r.exec("DELETE FROM changes WHERE seq > {:last}", dbx.Params{"last": last})
	}
	same := func(a, b string) bool { return a == b }
	recount := func(what string, wantSeen, wantWrong int) {
		t.Helper()
		wrong := 0
		seen, err := r.k.Recount(t.Context(), r.app, r.question(), same, nil, func(string) { wrong++ })
		if err != nil || seen != wantSeen || wrong != wantWrong {
			t.Errorf("%s: of %d patients %d are wrong, not of %d %d: %v", what, seen, wrong, wantSeen, wantWrong, err)
		}
	}
	recount("from the start", n, 0)
	untold("UPDATE patients SET mrn = 'Z' || mrn WHERE id IN ('" + id(0) + "', '" + id(worklist.Chunk) + "')")
	untold("UPDATE patients SET active = FALSE WHERE id IN ('" + id(5) + "', '" + id(n-1) + "')")
	untold("INSERT INTO patients (id, mrn, active, gender) VALUES ('f0000000-0000-6000-8000-000000000000', 'last', TRUE, 'other')")
	recount("five faults", n-1, 5)
	recount("they were put right", n-1, 0)
	r.want("and nobody is asked about anew", n-1, 0)
	r.exec("UPDATE patients SET mrn = 'W' || mrn WHERE id = '"+id(0)+"'", nil)
	recount("what was told is no fault", n-1, 0)
}

// A list is in order whatever changes of it, and what was handed out stays as it was.
func TestList(t *testing.T) {
	type item struct {
		patient worklist.Patient
		value   int
	}
	dice := rand.New(rand.NewPCG(3, 3))
	compare := func(a, b item) int {
		if a.value != b.value {
			return a.value - b.value
		}
		return worklist.Before(a.patient, b.patient)
	}
	app := vigiltest.NewApp(t)
	for i := range 30 {
		if _, err := app.DB().NewQuery(`INSERT INTO patients (id, mrn, active, gender) VALUES ({:id}, {:id}, TRUE, 'other')`).Bind(dbx.Params{"id": id(i)}).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	list := worklist.NewList(func(x item) worklist.Patient { return x.patient }, compare)
	k := worklist.New[[]item](&worklist.Feed{}, list)
	values := map[string][]int{}
	q := worklist.Question[[]item]{
		Whom: enrolled,
		Answer: func(_ core.App, ids []string) (map[string][]item, error) {
			found := map[string][]item{}
			for _, one := range ids {
				for _, value := range values[one] {
					found[one] = append(found[one], item{worklist.Patients(one)[0], value})
				}
			}
			return found, nil
		},
	}
	var last, copied []item
	for range 200 {
		for range dice.IntN(4) {
			one := id(dice.IntN(30))
			values[one] = nil
			for range dice.IntN(4) {
				values[one] = append(values[one], dice.IntN(8))
			}
			if _, err := app.DB().NewQuery(`UPDATE patients SET mrn = mrn || 'x' WHERE id = {:id}`).Bind(dbx.Params{"id": one}).Execute(); err != nil {
				t.Fatal(err)
			}
		}
		var got []item
		if err := k.Ask(app, q, func(a worklist.Snapshot[[]item]) { got = list.In(a) }); err != nil {
			t.Fatal(err)
		}
		var want []item
		for _, one := range slices.Sorted(maps.Keys(values)) {
			for _, value := range values[one] {
				want = append(want, item{worklist.Patients(one)[0], value})
			}
		}
		slices.SortStableFunc(want, compare)
		if !slices.Equal(got, want) {
			t.Fatalf("the list is %v, not %v", got, want)
		}
		if !slices.Equal(last, copied) {
			t.Fatal("a list that was handed out has changed")
		}
		last, copied = got, slices.Clone(got)
	}
}
