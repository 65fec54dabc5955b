package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// webhookSenders are devices that send to the webhook concurrently. Like the gateway they retry events without an answer, and they
// record the answered ones.
type webhookSenders struct {
	client *http.Client
	url    string
	secret string
	quit   chan struct{}
	group  sync.WaitGroup

	lock     sync.Mutex
	answered map[string]time.Time // time of the answer, by observation id
}

// startSenders starts one device for each gateway patient. Each sends its next reading when the last was answered.
func startSenders(client *http.Client, url, secret string, gatewayPatients ...string) *webhookSenders {
	s := &webhookSenders{client: client, url: url + webhook, secret: secret, quit: make(chan struct{}), answered: map[string]time.Time{}}
	newest := time.Now().Add(-time.Minute).Truncate(time.Second)
	for _, patient := range gatewayPatients {
		s.group.Go(func() {
			for i := 0; ; {
				select {
				case <-s.quit:
					return
				default:
				}
				if s.send(measurement(patient, "BP-"+patient, 118, 76, newest.Add(-time.Duration(i)*time.Second))) {
					i++
				} else {
					time.Sleep(20 * time.Millisecond) // the service is down for a while
				}
			}
		})
	}
	return s
}

func (s *webhookSenders) send(event object) bool {
	body, err := json.Marshal(event)
	if err != nil {
		return false
	}
	request, err := http.NewRequest(http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/json")
	for headers := signature(s.secret, string(body), time.Now()); len(headers) > 0; headers = headers[2:] {
		request.Header.Set(headers[0], headers[1])
	}
	response, err := s.client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	var said struct {
		ID string `json:"observation_id"`
	}
	if response.StatusCode != http.StatusOK || json.NewDecoder(response.Body).Decode(&said) != nil || said.ID == "" {
		return false
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.answered[said.ID] = time.Now()
	return true
}

// soFar returns the readings answered until now.
func (s *webhookSenders) soFar() map[string]time.Time {
	s.lock.Lock()
	defer s.lock.Unlock()
	return maps.Clone(s.answered)
}

// await waits until more readings have been answered.
func (s *webhookSenders) await(t testing.TB, more int) {
	t.Helper()
	want := len(s.soFar()) + more
	eventually(t, 2*within, fmt.Sprintf("%d readings are answered", want), func() bool { return len(s.soFar()) >= want })
}

// stop ends the senders and returns all answered readings.
func (s *webhookSenders) stop() map[string]time.Time {
	close(s.quit)
	s.group.Wait()
	return s.soFar()
}

// command runs vigil on a data folder with the practice's settings, and returns its output.
func (p *practice) command(t testing.TB, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(binary(t), append(args, "--dir", dir)...)
	cmd.Env = environ(p.Env)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must runs a command that must succeed.
func (p *practice) must(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := p.command(t, dir, args...)
	if err != nil {
		t.Fatalf("vigil %v: %v\n%s", args, err, out)
	}
	return out
}

// mustFail runs a command that must fail with one line containing a word.
func (p *practice) mustFail(t testing.TB, word, dir string, args ...string) {
	t.Helper()
	out, err := p.command(t, dir, args...)
	if err == nil || !strings.Contains(out, word) || strings.Count(strings.TrimSpace(out), "\n") > 0 {
		t.Errorf("vigil %v: %v, want one line with %q\n%s", args, err, word, out)
	}
}

// wantIntact checks a restored database: SQLite's integrity check passes, every reading has its dependent rows, and the audit
// trail verifies. It returns the ids of the readings.
func (p *practice) wantIntact(t testing.TB) map[string]bool {
	t.Helper()
	p.must(t, p.Dir, "audit", "verify")
	db := p.database(t)
	for what, query := range map[string]string{
		"problems of the file":               `SELECT COUNT(*) FROM pragma_integrity_check WHERE integrity_check != 'ok'`,
		"references to nothing":              `SELECT COUNT(*) FROM pragma_foreign_key_check`,
		"readings without a transmission":    `SELECT COUNT(*) FROM observations o WHERE NOT EXISTS (SELECT 1 FROM transmissions t WHERE t.observation = o.id)`,
		"transmissions without a reading":    `SELECT COUNT(*) FROM transmissions t WHERE NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = t.observation)`,
		"readings without an audit entry":    `SELECT COUNT(*) FROM observations o WHERE NOT EXISTS (SELECT 1 FROM audit_log a WHERE a.event = 'observation.create' AND a.resource_id = o.id)`,
		"audit entries without a reading":    `SELECT COUNT(*) FROM audit_log a WHERE a.event = 'observation.create' AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = a.resource_id)`,
		"patients whose days were not noted": `SELECT COUNT(DISTINCT patient) FROM observations WHERE patient NOT IN (SELECT patient FROM reading_days)`,
	} {
		var n int
		if err := db.NewQuery(query).Row(&n); err != nil || n != 0 {
			t.Errorf("%s: %d, %v", what, n, err)
		}
	}
	return readingIDs(t, db)
}

func readingIDs(t testing.TB, db *dbx.DB) map[string]bool {
	t.Helper()
	var ids []string
	if err := db.NewQuery("SELECT id FROM observations").Column(&ids); err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// countMissing counts the answered readings that are not stored.
func countMissing(answered map[string]time.Time, there map[string]bool) (n int) {
	for id := range answered {
		if !there[id] {
			n++
		}
	}
	return n
}

// enrollPatients enrolls patients that the gateway and the EMR have, and returns their gateway ids.
func (p *practice) enrollPatients(t testing.TB, n int) []string {
	t.Helper()
	var ids []string
	for i := range n {
		id := fmt.Sprint("GW-", i)
		p.patient(t, object{"gateway_patient_id": id, "external_id": fmt.Sprint("pat-", 1002+i)})
		ids = append(ids, id)
	}
	return ids
}

// A backup taken under load contains exactly the readings answered before it began, plus complete ones stored during it.
// Readings delivered since are not delivered again after the restore, even to an EMR without conditional create.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	p, emr, _ := deliveringPractice(t, sandbox.Fault{Match: createAtEMR, DelayMS: 5000}, "VIGIL_FHIR_CONDITIONAL_CREATE=false", "VIGIL_BACKUP_KEEP=0")
	load := startSenders(http.DefaultClient, p.URL, p.WebhookSecret, p.enrollPatients(t, 3)...)
	load.await(t, 100)
	before := load.soFar()
	said := p.must(t, p.Dir, "backup", "create")
	load.await(t, 50)
	after := load.stop()
	name, _, _ := strings.Cut(said, ":")
	if list := p.must(t, p.Dir, "backup", "list"); !strings.HasPrefix(list, name) {
		t.Errorf("the list lacks %s:\n%s", name, list)
	}
	if said := p.must(t, p.Dir, "backup", "verify"); !strings.HasPrefix(said, name+" is good") {
		t.Errorf("verify printed %s", said)
	}
	stranger := newPractice(t)
	stranger.Env = append(stranger.Env, strings.TrimSpace(valueLine(p.must(t, t.TempDir(), "keys", "generate"), "VIGIL_ENCRYPTION_KEYS")),
		"VIGIL_BACKUP_FOLDER="+filepath.Join(p.Dir, "snapshots"))
	stranger.mustFail(t, "VIGIL_ENCRYPTION_KEYS", t.TempDir(), "backup", "verify")
	p.mustFail(t, "in use", p.Dir, "backup", "restore", "--replace")

	emr.clearFaults(t)
	eventually(t, 2*within, "all is delivered", func() bool { return emr.stats(t).Observations == len(after) })
	p.Kill() // leaves no lock behind
	p.mustFail(t, "--replace", p.Dir, "backup", "restore")
	p.must(t, p.Dir, "backup", "restore", "--replace")
	there := p.wantIntact(t)
	if n := countMissing(before, there); n > 0 || len(there) >= len(after) || countMissing(after, there) != len(after)-len(there) {
		t.Errorf("%d readings answered before the backup are lost; it has %d of %d", n, len(there), len(after))
	}
	var waiting int
	db := p.database(t)
	const undelivered = "SELECT COUNT(*) FROM transmissions WHERE status != 'transmitted'"
	if err := db.NewQuery(undelivered).Row(&waiting); err != nil || waiting == 0 {
		t.Fatalf("no delivery was pending when the backup was taken: %v", err)
	}
	t.Logf("%d readings answered before, %d in the backup, %d in the end; %d of those in it were delivered only afterwards", len(before), len(there), len(after), waiting)
	p.serve(t, strings.TrimPrefix(p.URL, "http://"))
	eventually(t, 2*within, "nothing waits any more", func() bool {
		return db.NewQuery(undelivered).Row(&waiting) == nil && waiting == 0
	})
	if stats := emr.stats(t); stats.Observations != len(after) || stats.MostPerIdentifier != 1 {
		t.Errorf("after the restore the EMR holds %+v, want each of %d readings once", stats, len(after))
	}
}

// valueLine returns the NAME=value line of a block.
func valueLine(block, name string) string {
	for line := range strings.Lines(block) {
		if strings.HasPrefix(line, name+"=") {
			return line
		}
	}
	return ""
}
