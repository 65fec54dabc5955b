package collections

import (
	"maps"
	"slices"
)

func SizedTables() []string { return slices.Sorted(maps.Keys(sizes)) }

func ColumnsOfFewValues() []string { return slices.Sorted(maps.Keys(fewValues)) }

// AddresseeQuery is the search for whose an event is.
var AddresseeQuery = addressee

// Texts are the statements, one for each size of a group.
func (i RowInsert) Texts() []string { return slices.Collect(maps.Values(i.texts)) }
