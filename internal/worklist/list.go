package worklist

import (
	"slices"
	"strings"
)

// List is answers of which a patient may have several, in an order.
type List[T any] struct {
	compare func(a, b T) int // of nothing equal but the answers of one patient, which stay in their order
	of      func(T) Patient
	sorted  []T
	touched map[Patient]bool // since the list was made
}

// NewList returns an empty one. of says whose an answer is.
func NewList[T any](of func(T) Patient, compare func(a, b T) int) *List[T] {
	return &List[T]{compare: compare, of: of, touched: map[Patient]bool{}}
}

func (l *List[T]) changed(id Patient) { l.touched[id] = true }

func (l *List[T]) reset() {
	l.sorted = nil
	clear(l.touched)
}

// In are the answers in the list's order. The list is never changed afterwards.
func (l *List[T]) In(answers Snapshot[[]T]) []T {
	if answers.fresh {
		var all []T
		for _, some := range answers.Of {
			all = append(all, some...)
		}
		slices.SortStableFunc(all, l.compare)
		return all
	}
	if len(l.touched) == 0 {
		return l.sorted
	}
	stay := make([]T, 0, len(l.sorted)+len(l.touched))
	for _, one := range l.sorted {
		if !l.touched[l.of(one)] {
			stay = append(stay, one)
		}
	}
	var come []T
	for id := range l.touched {
		come = append(come, answers.Of[id]...)
	}
	clear(l.touched)
	slices.SortStableFunc(come, l.compare)
	l.sorted = merged(stay, come, l.compare)
	return l.sorted
}

func merged[T any](a, b []T, compare func(a, b T) int) []T {
	if len(a) == 0 {
		return b
	}
	list := make([]T, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(a[0], b[0]) <= 0 {
			list, a = append(list, a[0]), a[1:]
		} else {
			list, b = append(list, b[0]), b[1:]
		}
	}
	return append(append(list, a...), b...)
}

// Before compares patients by id.
func Before(a, b Patient) int {
	if a == b {
		return 0
	}
	return strings.Compare(a.Value(), b.Value())
}
