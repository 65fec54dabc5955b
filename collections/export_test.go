package collections

import (
	"maps"
	"slices"
)

func SizedTables() []string { return slices.Sorted(maps.Keys(sizes)) }

func ColumnsOfFewValues() []string { return slices.Sorted(maps.Keys(fewValues)) }
