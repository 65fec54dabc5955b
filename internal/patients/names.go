package patients

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Name is what a list of alerts, claims or triage rows shows of a patient. It refuses to print.
type Name struct{ collections.PatientName }

// Format shows nothing of the name.
func (Name) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[name]") }

// LogValue shows nothing of the name.
func (Name) LogValue() slog.Value { return slog.StringValue("[name]") }

// MarshalJSON refuses.
func (Name) MarshalJSON() ([]byte, error) { return nil, errors.New("patients: a name is not encoded") }

// Readable reports whether the name could be opened.
func (n Name) Readable() bool { return !n.Unreadable }

// LastFirst is "Lovelace, Ada", as claims have it.
func (n Name) LastFirst() string {
	if n.Unreadable {
		return collections.UnreadableText
	}
	return strings.TrimSuffix(strings.TrimPrefix(n.Last.Reveal()+", "+n.First.Reveal(), ", "), ", ")
}

// Names opens the names of the given patients, of any state, with one query; unknown ids are left out.
func Names(app core.App, ids []string) (map[string]Name, error) {
	found, err := collections.PatientNames(app, ids)
	if err != nil {
		return nil, err
	}
	names := make(map[string]Name, len(found))
	for _, n := range found {
		names[n.ID] = Name{n}
	}
	return names, nil
}
