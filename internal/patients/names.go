package patients

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Name is what a list of alerts, claims or triage rows shows of a patient. It refuses to print.
type Name struct {
	MRN         string
	first, last phi.Text
	unreadable  bool
}

// Format shows nothing of the name.
func (Name) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[name]") }

// LogValue shows nothing of the name.
func (Name) LogValue() slog.Value { return slog.StringValue("[name]") }

// MarshalJSON refuses.
func (Name) MarshalJSON() ([]byte, error) { return nil, errors.New("patients: a name is not encoded") }

// Readable reports whether the name could be opened.
func (n Name) Readable() bool { return !n.unreadable }

// FirstLast is "Ada Lovelace", or [collections.UnreadableText]: the row of a patient in danger is not left out because the name cannot be
// opened, and the medical record number beside it says who it is.
func (n Name) FirstLast() string {
	if n.unreadable {
		return collections.UnreadableText
	}
	return strings.TrimSpace(n.first.Reveal() + " " + n.last.Reveal())
}

// LastFirst is "Lovelace, Ada", as claims have it.
func (n Name) LastFirst() string {
	if n.unreadable {
		return collections.UnreadableText
	}
	return strings.TrimSuffix(strings.TrimPrefix(n.last.Reveal()+", "+n.first.Reveal(), ", "), ", ")
}

// Names opens the names of the given patients, of any state, with one query; unknown ids are left out.
func Names(app core.App, ids []string) (map[string]Name, error) {
	found, err := collections.PatientNames(app, ids)
	if err != nil {
		return nil, err
	}
	names := make(map[string]Name, len(found))
	for _, n := range found {
		names[n.ID] = Name{MRN: n.MRN, first: n.First, last: n.Last, unreadable: n.Unreadable}
	}
	return names, nil
}
