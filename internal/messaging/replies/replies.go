// Package replies reads what a patient texted: a request to stop, start or help, words of an
// emergency, or a reading that the practice requested. It leaves anything uncertain to a person.
// The package is pure: it has no patients, stores nothing and sends nothing. Rules:
// docs/decisions/messages.md, "Replies".
package replies

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Command is a request about the messages.
type Command string

// The commands.
const (
	None  Command = ""
	Stop  Command = "stop"
	Start Command = "start"
	Help  Command = "help"
)

// Emergency is the kind of emergency that a text names.
type Emergency string

// The emergencies. A text about both is SelfHarm, because its answer names more.
const (
	NoEmergency Emergency = ""
	Danger      Emergency = "danger"
	SelfHarm    Emergency = "self_harm"
)

// Requested is what the practice requested of the patient. It gives a bare number its meaning.
type Requested struct {
	// Kinds are those of the open request; none if there is no request, and then no text is a reading.
	Kinds []vitals.Kind
	// LastWeightKg decides between pounds and kilograms; 0 if unknown.
	LastWeightKg float64
}

// Values are those of one reading, in the members of a request body. They may be implausible: the caller checks them as for any other body.
type Values struct {
	Kind vitals.Kind
	Body vitals.Body
}

// Format keeps values out of logs and error texts.
func (Values) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[values]") }

// LogValue keeps values out of structured logs.
func (Values) LogValue() slog.Value { return slog.StringValue("[values]") }

// Reply is the meaning of a text.
type Reply struct {
	Command   Command
	Emergency Emergency
	// HasMore: the text has more than the command.
	HasMore bool
	// Values is nil if the text is no certain reading.
	Values *Values
	// IsDangerous: the text is no certain reading, but has a value in it that would be critical by the bounds of a new practice.
	IsDangerous bool
	// IsImplausible: that value is beyond what a device shows, and the patient should look again.
	IsImplausible bool
}

// Read returns the meaning of a text. An emergency excludes no other meaning; a command excludes a reading.
func Read(text string, asked Requested) Reply {
	folded := fold(text)
	sentences := split(folded)
	reply := Reply{Emergency: emergencyOf(sentences)}
	reply.Command, reply.HasMore = commandOf(sentences)
	if reply.Command != None {
		return reply
	}
	list, isPlain := scan(strings.ToLower(folded))
	if isPlain && len(asked.Kinds) > 0 {
		reply.Values = readingOf(list, asked)
	}
	if reply.Values == nil {
		reply.IsDangerous, reply.IsImplausible = dangerOf(list, isPlain, asked)
		reply.IsDangerous = reply.IsDangerous || isBeyondMeter(sentences, asked)
	}
	return reply
}
