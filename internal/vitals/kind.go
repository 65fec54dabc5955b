package vitals

import (
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/validate"
)

// Kind is the kind of a reading, the contract's observation_type.
type Kind string

// Definition defines a kind. Each kind is registered in a file of its own; other code iterates over the definitions and names none.
type Definition struct {
	Kind Kind
	// Position is the kind's position in the contract's lists, from 1.
	Position int
	// Required are the parameters that a reading must have, Optional those it may have. The first one is charted where there is space for
	// one.
	Required, Optional []*Parameter
	Qualifiers         []*Qualifier
	// CheckCoherence rejects values that contradict each other; nil if none can.
	CheckCoherence func(r Reading, c *validate.Checks)
	// Words are the gateways' other words for the kind, in lower case.
	Words []string
	// FieldAliases are the gateways' other words for parameters of this kind.
	FieldAliases map[*Parameter]string
	// Side is the parameter that never rejects a gateway's reading; nil for none. Qualifiers never do. Source: docs/decisions/gateway.md, "Side
	// values".
	Side *Parameter
	// Devices are other words for the device that measures it, in lower case.
	Devices []string
	Stale   Stale
	FHIR    Form

	// All are Required, then Optional; Groups are those with thresholds, by group; SuspectParameter is the one with a suspect rule, or nil.
	All              []*Parameter
	Groups           [][]*Parameter
	SuspectParameter *Parameter
}

// Stale defines when readings that never change are suspicious. Source: docs/decisions/devices.md, "Stale readings".
type Stale struct {
	// Days is the number of consecutive local days with the same values.
	Days int
	// Of are the compared parameters, all of which must be present; Also are compared if present.
	Of, Also []*Parameter
	// Decimals is the precision of the comparison.
	Decimals int
}

// Form defines the kind's FHIR observation. Source: docs/decisions/fhir.md, "Codes, units, profiles per type" and "Category"; LOINC; US
// Core.
type Form struct {
	Profile string // of US Core
	Codes   []Code // LOINC
	// Laboratory observations have that category as well as vital signs.
	Laboratory bool
	// Value is the parameter in the observation's value; nil if all are components.
	Value *Parameter
	// Device is the SNOMED CT code of the device.
	Device Code
}

// Code is a code of a terminology with its display text.
type Code struct{ Code, Display string }

// The kinds, their parameters and qualifiers, in the order of Position and of definition.
var (
	Kinds       []Kind
	KindNames   []string
	Definitions []*Definition
	Parameters  []*Parameter
	Qualifiers  []*Qualifier
	// ThresholdParameters are the parameters with thresholds, in the contract's order of groups: bounds first, then changes.
	ThresholdParameters []*Parameter
	// ChangeParameters are those that are watched for changes.
	ChangeParameters []*Parameter
)

// undefined is the definition of a kind that does not exist.
var undefined Definition

// register adds a kind. It runs at program start in any order of files; the lists are sorted after each call.
func register(d Definition) {
	d.All = slices.Concat(d.Required, d.Optional)
	for _, p := range d.All {
		p.Kinds = append(p.Kinds, d.Kind)
		if p.Suspect != nil {
			d.SuspectParameter = p
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
	slices.SortFunc(Definitions, func(a, b *Definition) int { return a.Position - b.Position })
	Kinds, KindNames, Parameters, Qualifiers, ThresholdParameters, ChangeParameters = nil, nil, nil, nil, nil, nil
	for _, definition := range Definitions {
		Kinds, KindNames = append(Kinds, definition.Kind), append(KindNames, string(definition.Kind))
		for _, p := range definition.All {
			if !slices.Contains(Parameters, p) {
				p.index = len(Parameters)
				Parameters = append(Parameters, p)
			}
		}
		for _, m := range definition.Qualifiers {
			m.index = len(Qualifiers)
			Qualifiers = append(Qualifiers, m)
		}
	}
	for _, changes := range []bool{false, true} {
		for _, p := range Parameters {
			if p.Group != "" && changes == (p.Change != nil) {
				ThresholdParameters = append(ThresholdParameters, p)
				if changes {
					ChangeParameters = append(ChangeParameters, p)
				}
			}
		}
	}
	if len(Parameters) > maxParameters || len(Qualifiers) > maxQualifiers {
		panic("vitals: a reading has no room for so many parameters or marks")
	}
}

// Valid reports whether k is one of Kinds.
func (k Kind) Valid() bool { return k.Definition() != &undefined }

// Definition returns the kind's definition, an empty one if it does not exist.
func (k Kind) Definition() *Definition {
	for _, d := range Definitions {
		if d.Kind == k {
			return d
		}
	}
	return &undefined
}

// Main returns the parameter that is charted where there is space for one.
func (d *Definition) Main() *Parameter { return d.Required[0] }

// Path returns the kind as a path segment.
func (k Kind) Path() string { return strings.ReplaceAll(string(k), "_", "-") }

// Title returns the kind in words.
func (k Kind) Title() string { return strings.ReplaceAll(string(k), "_", " ") }

// Units returns the words for the unit of the kind's values. choice reports that a gateway must name one, because there are several:
// guessing is unsafe.
func (d *Definition) Units() (words []string, choice bool) {
	main := d.Main()
	words = append(words, main.Range.Unit)
	words = append(words, main.Words...)
	for _, unit := range main.Units {
		words = append(words, unit.Words...)
	}
	return words, len(main.Units) > 0
}
