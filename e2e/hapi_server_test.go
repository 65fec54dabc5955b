package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fetchHAPI has Maven fetch and compile the HAPI FHIR server of testdata/hapi, and returns its class path. It skips the test where that
// cannot be.
func fetchHAPI(t *testing.T) string {
	t.Helper()
	if os.Getenv("VIGIL_TEST_HAPI") == "" {
		t.Skip("make drills runs this")
	}
	for _, needed := range []string{"mvn", "javac", "java"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("no %s here: a HAPI FHIR server needs Java 17 and Maven", needed)
		}
	}
	folder := t.TempDir()
	list := filepath.Join(folder, "classpath")
	out, err := exec.Command("mvn", "--batch-mode", "--quiet", "--file", "e2e/testdata/hapi/pom.xml", "-DbuildDirectory="+folder,
		"compile", "dependency:build-classpath", "-Dmdep.outputFile="+list).CombinedOutput()
	if err != nil {
		t.Fatalf("mvn: %v\n%s", err, out)
	}
	fetched, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, "classes") + string(os.PathListSeparator) + strings.TrimSpace(string(fetched))
}

// hapi is a HAPI FHIR server on a database in a file.
type hapi struct {
	addr, url, base string // base is what it takes for its own address
	classes         string
	database        string
	cmd             *exec.Cmd
	done            chan error
	said            bytes.Buffer
}

func newHAPI(t *testing.T, classes, base string) *hapi {
	t.Helper()
	addr := freeAddr(t)
	h := &hapi{addr: addr, url: "http://" + addr + "/fhir", base: base, classes: classes, database: filepath.Join(t.TempDir(), "hapi")}
	h.start(t)
	t.Cleanup(h.kill)
	return h
}

func (h *hapi) start(t *testing.T) {
	t.Helper()
	h.cmd = exec.Command("java", "-Xmx1500m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", h.classes, "Hapi", h.addr, h.base, h.database)
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	h.said.Reset()
	h.cmd.Stdout, h.cmd.Stderr = &h.said, &h.said
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h.done = make(chan error, 1)
	go func() { h.done <- h.cmd.Wait() }()
	eventually(t, 4*time.Minute, "HAPI answers", func() bool {
		select {
		case err := <-h.done:
			h.done <- err
			t.Fatalf("HAPI ended: %v\n%s", err, &h.said)
		default:
		}
		answer, err := http.Get(h.url + "/metadata")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// kill ends it as a power cut would; a second call does nothing.
func (h *hapi) kill() {
	_ = h.cmd.Process.Kill()
	err := <-h.done
	h.done <- err
}

// put stores a resource under an id of ours.
func (h *hapi) put(t *testing.T, kind, id string, resource object) {
	t.Helper()
	resource["resourceType"], resource["id"] = kind, id
	a := sendEMR(t, http.MethodPut, h.url+"/"+kind+"/"+id, "", strings.NewReader(encode(t, resource)), "application/fhir+json")
	if a.status != http.StatusOK && a.status != http.StatusCreated {
		t.Fatalf("%s answered %d\n%s", a.request, a.status, a.body)
	}
}

// kept is an Observation as HAPI has it.
type kept struct {
	ID   string
	Meta struct {
		VersionID   string
		LastUpdated time.Time
	}
	Identifier []struct{ System, Value string }
	Status     string
	Subject    struct{ Reference string }
	Component  []struct {
		Code struct {
			Coding []struct{ Code string }
		}
		ValueQuantity struct{ Value float64 }
	}
}

// value is that of the component with a LOINC code; 0 when there is none.
func (k kept) value(code string) float64 {
	for _, c := range k.Component {
		if len(c.Code.Coding) > 0 && c.Code.Coding[0].Code == code {
			return c.ValueQuantity.Value
		}
	}
	return 0
}

// list reads all pages of a search or a history, as they are now and not as HAPI remembers them.
func (h *hapi) list(t *testing.T, path string) (list []kept) {
	t.Helper()
	for next := h.url + path; next != ""; {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, next, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Cache-Control", "no-cache")
		var page struct {
			Link  []struct{ Relation, URL string }
			Entry []struct{ Resource kept }
		}
		if err := json.Unmarshal(ask(t, request).expect(t, http.StatusOK).body, &page); err != nil {
			t.Fatal(err)
		}
		next = ""
		for _, entry := range page.Entry {
			list = append(list, entry.Resource)
		}
		for _, link := range page.Link {
			if link.Relation == "next" {
				next = h.url + strings.TrimPrefix(link.URL, h.base)
			}
		}
	}
	return list
}
