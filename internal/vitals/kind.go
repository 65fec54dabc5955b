package vitals

import (
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/validate"
)

// Kind is the kind of a reading, the contract's observation_type.
type Kind string

// Definition is all there is to know about a kind. Each kind is declared in a file of its own; everybody else walks
// these values and knows none by name.
type Definition struct {
	Kind Kind
	// Place is where the kind stands in the contract's lists, counted from 1.
	Place int
	// Must are the parameters without which there is no reading, May those that it can hold besides. The first is the
	// one drawn where there is room for one.
	Must, May []*Parameter
	Marks     []*Mark
	// Coherent complains about values that contradict each other; nil for a kind where none can.
	Coherent func(r Reading, c *validate.Checks)
	// Words are the gateways' other words for the kind, in lower case.
	Words []string
	// Fields are the gateways' other words for parameters of this kind.
	Fields map[*Parameter]string
	// Devices are other words for the device that measures it, in lower case.
	Devices []string
	Stale   Stale
	FHIR    Form

	// All are Must, then May; Groups those of them that have thresholds, by group; Doubted is the one that may be somebody else's, or nil.
	All     []*Parameter
	Groups  [][]*Parameter
	Doubted *Parameter
}

// Stale says when readings that never change are suspicious.
// Source: docs/decisions/devices.md, "Stale readings".
type Stale struct {
	// Days is how many local days in a row with the same values it takes.
	Days int
	// Of are the parameters compared, all of which must be there; Also those compared as they are.
	Of, Also []*Parameter
	// Decimals to which they are compared.
	Decimals int
}

// Form is what is particular about the kind as a FHIR observation.
// Source: docs/decisions/fhir.md, "Codes, units, profiles per type" and "Category"; LOINC; US Core.
type Form struct {
	Profile string // of US Core
	Codes   []Code // LOINC
	// Laboratory observations are in that category as well as among the vital signs.
	Laboratory bool
	// Value is the parameter that is the observation's own value; nil where all are components.
	Value *Parameter
	// Device is the SNOMED CT code of what measures it.
	Device Code
}

// Code is a code of a terminology with its words there.
type Code struct{ Code, Display string }

// The kinds, what they measure and what they say besides, each in the order of Place and of the declarations.
var (
	Kinds       []Kind
	KindNames   []string
	Definitions []*Definition
	Parameters  []*Parameter
	Marks       []*Mark
	// Watched are the parameters that have thresholds, in the contract's order of groups: bounds first, then changes.
	Watched []*Parameter
	// Changing are those of them that are watched for changes.
	Changing []*Parameter
)

// undefined is what is known about a kind that does not exist.
var undefined Definition

// declare makes a kind known. It is called while the program starts, in whatever order the files come; the lists are
// in order after each call.
func declare(d Definition) {
	d.All = slices.Concat(d.Must, d.May)
	for _, p := range d.All {
		p.Kinds = append(p.Kinds, d.Kind)
		if p.Doubt != nil {
			d.Doubted = p
		}
		switch last := len(d.Groups) - 1; {
		case p.Group == "":
		case last >= 0 && d.Groups[last][0].Group == p.Group:
			d.Groups[last] = append(d.Groups[last], p)
		default:
			d.Groups = append(d.Groups, []*Parameter{p})
		}
	}
	Definitions = append(Definitions, &d)
	slices.SortFunc(Definitions, func(a, b *Definition) int { return a.Place - b.Place })
	Kinds, KindNames, Parameters, Marks, Watched, Changing = nil, nil, nil, nil, nil, nil
	for _, known := range Definitions {
		Kinds, KindNames = append(Kinds, known.Kind), append(KindNames, string(known.Kind))
		for _, p := range known.All {
			if !slices.Contains(Parameters, p) {
				p.place = len(Parameters)
				Parameters = append(Parameters, p)
			}
		}
		for _, m := range known.Marks {
			m.place = len(Marks)
			Marks = append(Marks, m)
		}
	}
	for _, changes := range []bool{false, true} {
		for _, p := range Parameters {
			if p.Group != "" && changes == (p.Change != nil) {
				Watched = append(Watched, p)
				if changes {
					Changing = append(Changing, p)
				}
			}
		}
	}
	if len(Parameters) > mostParameters || len(Marks) > mostMarks {
		panic("vitals: a reading has no room for so many parameters or marks")
	}
}

// Valid reports whether k is one of Kinds.
func (k Kind) Valid() bool { return k.Definition() != &undefined }

// Definition is what is known about the kind; nothing about one that does not exist.
func (k Kind) Definition() *Definition {
	for _, d := range Definitions {
		if d.Kind == k {
			return d
		}
	}
	return &undefined
}

// Main is the parameter drawn where there is room for one.
func (d *Definition) Main() *Parameter { return d.Must[0] }

// Path is the kind as a part of a path.
func (k Kind) Path() string { return strings.ReplaceAll(string(k), "_", "-") }

// Title is the kind in words.
func (k Kind) Title() string { return strings.ReplaceAll(string(k), "_", " ") }

// Units are the words by which a gateway may name the unit of the kind's values. Where they mean more than one unit it
// must: to guess is unsafe.
func (d *Definition) Units() (words []string, choice bool) {
	main := d.Main()
	words = append(words, main.Range.Unit)
	words = append(words, main.Words...)
	for _, unit := range main.Units {
		words = append(words, unit.Words...)
	}
	return words, len(main.Units) > 0
}
