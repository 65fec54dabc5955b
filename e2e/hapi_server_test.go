package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/e2e/hapi"
)

// fetchHAPI fetches and compiles the HAPI FHIR server with Maven. It skips the test when that is not possible.
func fetchHAPI(t *testing.T) hapi.Kit {
	t.Helper()
	if os.Getenv("VIGIL_TEST_HAPI") == "" {
		t.Skip("make drills runs this")
	}
	kit, err := hapi.Assemble(t.Context(), t.TempDir())
	if _, missing := errors.AsType[hapi.Unavailable](err); missing {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return kit
}

// hapiServer is a HAPI FHIR server with strict settings, on a database in a file.
type hapiServer struct {
	*hapi.Server
	kit     hapi.Kit
	options hapi.Options
	url     string // the same across restarts
}

func newHAPI(t *testing.T, kit hapi.Kit, base string) *hapiServer {
	t.Helper()
	addr := freeAddr(t)
	h := &hapiServer{kit: kit, url: "http://" + addr + "/fhir", options: hapi.Options{
		Address: addr, Base: base, Database: filepath.Join(t.TempDir(), "hapi"), Strict: true,
		JVM: []string{"-Xmx1500m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"},
	}}
	h.start(t)
	t.Cleanup(func() { h.Kill() })
	return h
}

func (h *hapiServer) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	server, err := h.kit.Start(t.Context(), h.options)
	if err == nil {
		h.Server = server
		err = h.Await(ctx, "/metadata")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// put stores a resource under a given id.
func (h *hapiServer) put(t *testing.T, kind, id string, resource object) {
	t.Helper()
	resource["resourceType"], resource["id"] = kind, id
	a := sendEMR(t, http.MethodPut, h.url+"/"+kind+"/"+id, "", strings.NewReader(encode(t, resource)), "application/fhir+json")
	if a.status != http.StatusOK && a.status != http.StatusCreated {
		t.Fatalf("%s answered %d\n%s", a.request, a.status, a.body)
	}
}

// storedObservation is an Observation as HAPI returns it.
type storedObservation struct {
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

// value returns the value of the component with a LOINC code, or 0.
func (so storedObservation) value(code string) float64 {
	for _, c := range so.Component {
		if len(c.Code.Coding) > 0 && c.Code.Coding[0].Code == code {
			return c.ValueQuantity.Value
		}
	}
	return 0
}

// list reads all pages of a search or a history, without HAPI's search cache.
func (h *hapiServer) list(t *testing.T, path string) (list []storedObservation) {
	t.Helper()
	for next := h.url + path; next != ""; {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, next, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Cache-Control", "no-cache")
		var page struct {
			Link  []struct{ Relation, URL string }
			Entry []struct{ Resource storedObservation }
		}
		if err := json.Unmarshal(sendRequest(t, request).expect(t, http.StatusOK).body, &page); err != nil {
			t.Fatal(err)
		}
		next = ""
		for _, entry := range page.Entry {
			list = append(list, entry.Resource)
		}
		for _, link := range page.Link {
			if link.Relation == "next" {
				next = h.url + strings.TrimPrefix(link.URL, h.options.Base)
			}
		}
	}
	return list
}
