package collections

import (
	"maps"
	"slices"
)

func SizedTables() []string { return slices.Sorted(maps.Keys(tableSizes)) }

func ColumnsWithDistinctValues() []string { return slices.Sorted(maps.Keys(distinctValues)) }

// EventMatchQuery is the query that matches an event with patients.
var EventMatchQuery = eventMatchQuery

// Texts returns the statements, one for each batch size.
func (i RowInsert) Texts() []string { return slices.Collect(maps.Values(i.texts)) }
