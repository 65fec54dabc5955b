package collections

import (
	"maps"
	"slices"
)

func SizedTables() []string { return slices.Sorted(maps.Keys(sizes)) }

func ColumnsOfFewValues() []string { return slices.Sorted(maps.Keys(fewValues)) }

// ByIdentifier is the search for the patient whom an event names.
const ByIdentifier = byIdentifier
