package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// vendors have a file of vectors each, named after them.
var vendors = func() []Vendor {
	var others []Vendor
	for vendor := range NewAdapters(config.Gateway{}, 0) {
		if vendor != Contract {
			others = append(others, vendor)
		}
	}
	slices.Sort(others)
	return others
}()

// vector is what a vendor sends, and its events: one line each.
type vector struct {
	Name string          `json:"name"`
	Sent json.RawMessage `json:"sent"`
	Want []string        `json:"want"`
}

func vectorsOf(t testing.TB, vendor Vendor) (vectors []vector) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + string(vendor) + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

// line returns an event in the format of the vectors.
func line(event Event, err error) string {
	parts := []string{string(event.Type), event.MeasurementType, event.Index}
	if event.Reading != nil {
		parts = append(parts, event.Reading.ValuesKey())
	}
	if event.BatteryLevel != nil {
		parts = append(parts, "battery", fmt.Sprint(*event.BatteryLevel))
	}
	for _, name := range slices.Sorted(maps.Keys(map[string]string{"by": event.DeviceID, "on": event.HubID, "of": event.PatientID})) {
		if id := map[string]string{"by": event.DeviceID, "on": event.HubID, "of": event.PatientID}[name]; id != "" {
			parts = append(parts, name, id)
		}
	}
	if !event.At.IsZero() {
		parts = append(parts, "at", validate.FormatInstant(event.At))
	}
	if event.IsUnsupported() && err == nil {
		parts = append(parts, "unsupported")
	}
	if len(event.Parts) > 0 {
		parts = append(parts, "additions", strings.Join(event.Parts, "+"))
	}
	for _, field := range slices.Sorted(maps.Keys(event.RejectedValues)) {
		parts = append(parts, "without", field+":", strings.Join(event.RejectedValues[field], " "))
	}
	if len(event.LeftOut) > 0 {
		parts = append(parts, "left out", strings.Join(event.LeftOut, " "))
	}
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		parts = append(parts, "refused", refused.Code)
		for _, field := range slices.Sorted(maps.Keys(refused.Fields)) {
			parts = append(parts, field+":", strings.Join(refused.Fields[field], " "))
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

func TestVendors(t *testing.T) {
	at := time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC)
	adapters := NewAdapters(config.Gateway{}, 5*time.Minute)
	for _, vendor := range vendors {
		for _, v := range vectorsOf(t, vendor) {
			var got []string
			for _, body := range adapters[vendor].Split(v.Sent) {
				event, err := adapters[vendor].Parse(body, at)
				if event.Vendor != vendor {
					t.Errorf("%s, %s: the event is %q's", vendor, v.Name, event.Vendor)
				}
				got = append(got, line(event, err))
			}
			if diff := cmp.Diff(v.Want, got); diff != "" {
				t.Errorf("%s, %s: %s", vendor, v.Name, diff)
			}
		}
	}
}

// Keys of two vendors never collide, and the contract's are as they were stored.
func TestKeysByVendor(t *testing.T) {
	event := Event{Type: MeasurementCreated, DeviceID: "D", At: now, measurement: "weight"}
	keys := map[string]Vendor{event.Key(): Contract}
	if want := "measurement.created|D|" + now.Format(time.RFC3339) + "|weight"; event.Key() != want {
		t.Errorf("the contract's key is %s, want %s", event.Key(), want)
	}
	bodies := map[string]Vendor{BodyID(Contract, []byte("{}")): Contract}
	for _, vendor := range vendors {
		event.Vendor = vendor
		if other, taken := keys[event.Key()]; taken {
			t.Errorf("%s and %q share %s", vendor, other, event.Key())
		}
		if other, taken := bodies[BodyID(vendor, []byte("{}"))]; taken {
			t.Errorf("%s and %q name bytes alike", vendor, other)
		}
		keys[event.Key()], bodies[BodyID(vendor, []byte("{}"))] = vendor, vendor
	}
	event.Vendor, event.Type = Contract, EventType(vendors[0])
	if _, taken := keys[event.Key()]; taken {
		t.Error("a type of the contract's that is called like a vendor takes its key")
	}
}

func TestSharedSecret(t *testing.T) {
	s := sharedSecret{"s3cret", []string{"Authorization", "X-Api-Key"}}
	for _, test := range []struct {
		name, header, value string
		ok                  bool
	}{
		{"whole", "Authorization", "s3cret", true},
		{"bearer", "Authorization", "Bearer s3cret", true},
		{"scheme of the vendor", "Authorization", "Api-Key s3cret", true},
		{"key", "X-Api-Key", "s3cret", true},
		{"key in lower case", "x-api-key", "s3cret", true},
		{"other header", "X-Other", "s3cret", false},
		{"part", "X-Api-Key", "s3cre", false},
		{"more", "X-Api-Key", "s3cret2", false},
		{"empty", "X-Api-Key", "", false},
		{"case", "X-Api-Key", "S3CRET", false},
		{"scheme alone", "Authorization", "Bearer ", false},
		{"two words", "Authorization", "Bearer s3cret x", false},
	} {
		header := http.Header{}
		header.Set(test.header, test.value)
		name, err := s.Verify(header, nil, now)
		if ok := err == nil && name == CurrentSecret; ok != test.ok {
			t.Errorf("%s: %q (%v)", test.name, name, err)
		}
	}
	if _, err := (sharedSecret{}).Verify(http.Header{"Authorization": {""}}, nil, now); err == nil || err.Error() != notConfigured().Error() {
		t.Errorf("without a secret: %v", err)
	}
}

// fuzzVendor sends arbitrary bytes to a vendor's parser: every byte of a parsed event belongs to one event, a reading is in range, and
// parsing it again gives the same.
func fuzzVendor(f *testing.F, vendor Vendor) {
	for _, v := range vectorsOf(f, vendor) {
		f.Add([]byte(v.Sent))
	}
	f.Add([]byte(`[]`))
	f.Add([]byte(`[[{}],null,7,"x"]`))
	adapter := NewAdapters(config.Gateway{}, 5*time.Minute)[vendor]
	at := time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, sent []byte) {
		bodies := adapter.Split(sent)
		if len(bodies) == 0 {
			t.Fatal("nothing is left of it")
		}
		for _, body := range bodies {
			event, err := adapter.Parse(body, at)
			again, errAgain := adapter.Parse(body, at)
			if event.ID() != again.ID() || (err == nil) != (errAgain == nil) {
				t.Fatal("read twice it is another")
			}
			if err != nil {
				if event.Reading != nil {
					t.Fatal("a refused event has a reading")
				}
				continue
			}
			if split := adapter.Split(body); len(split) != 1 {
				t.Fatalf("an event is taken apart: %q", split)
			}
			if event.Reading != nil && event.Part == "" {
				checks := validate.NewChecks()
				event.Reading.Check(checks)
				if checks.Err() != nil {
					t.Fatalf("%v", checks.Fields)
				}
			}
		}
	})
}

func FuzzTelli(f *testing.F) { fuzzVendor(f, Telli) }

func FuzzTenovi(f *testing.F) { fuzzVendor(f, Tenovi) }
