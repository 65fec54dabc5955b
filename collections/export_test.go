package collections

import (
	"maps"
	"slices"
)

func SizedTables() []string { return slices.Sorted(maps.Keys(sizes)) }

func ColumnsOfFewValues() []string { return slices.Sorted(maps.Keys(fewValues)) }

// AddresseeQuery is the search for whose an event is.
var AddresseeQuery = addressee
