package phi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/phi"
)

const mark = "MARKED"

// TestNothingPrints formats every type that holds a secret in every way that prints.
func TestNothingPrints(t *testing.T) {
	address := phi.Address{Line1: mark, City: mark, State: mark, Zip: mark}
	person := phi.Demographics{FirstName: mark, LastName: mark, DateOfBirth: mark, SSN: mark, Phone: mark, Email: mark, Address: &address}
	k := phi.Key{ID: "k1", Secret: [phi.KeySize]byte([]byte(strings.Repeat(mark, 6)))}
	r := ring(t, k)
	stored := seal(t, r, string(k.Secret[:]), "index_key", "1")
	index, err := r.OpenIndexKey(stored)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{
		"text": phi.Text(mark), "address": address, "address pointer": &address, "person": person, "person pointer": &person,
		"key": k, "keys": []phi.Key{k}, "ring": r, "index key": index, "sealer": sealer(t, r, index),
		"inside": struct {
			Name   phi.Text
			Person phi.Demographics
			Key    phi.Key
		}{mark, person, k},
	}
	// A byte array prints as numbers, as hex or as base64.
	leaks := []string{mark, "77 65 82", "77,65,82", "4d41524b", "4D41524B", "0x4d", "TUFSS0VE"}
	for name, value := range values {
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", value)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", value)
		encoded, _ := json.Marshal(value) // an error is a refusal, and as good
		printed := map[string]string{"slog": log.String(), "json": string(encoded), "error": fmt.Errorf("wrapped: %v", value).Error()}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			printed[verb] = fmt.Sprintf(verb, value)
		}
		for way, text := range printed {
			for _, leak := range leaks {
				if strings.Contains(text, leak) {
					t.Errorf("%s leaks through %s: %s", name, way, text)
				}
			}
		}
	}
}

func TestEncodingIsRefused(t *testing.T) {
	for _, value := range []any{phi.Text("x"), phi.Demographics{}, phi.Address{}, phi.Key{}} {
		if _, err := json.Marshal(value); err == nil {
			t.Errorf("%T was encoded", value)
		}
	}
	if phi.Text("x").Reveal() != "x" {
		t.Error("Reveal must return the text")
	}
}

func TestAddressRoundTrip(t *testing.T) {
	for _, want := range []*phi.Address{
		nil,
		{Line1: "1 Main St", City: "Ithaca", State: "NY", Zip: "14850", Country: "US"},
		{Line1: "1 Rue \"A\"", Line2: "Étage 2", City: "Paris", State: "IDF", Zip: "75001", Country: "FR"},
	} {
		plaintext, err := want.Plaintext()
		if err != nil {
			t.Fatal(err)
		}
		got, err := phi.ParseAddress(plaintext)
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(got, want) {
			t.Errorf("%s did not come back as it went", plaintext)
		}
	}
	_, err := phi.ParseAddress(`{"line1":` + mark)
	if err == nil || strings.Contains(err.Error(), mark) || errors.Unwrap(err) != nil {
		t.Errorf("unexpected error %v", err)
	}
}
