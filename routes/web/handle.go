package web

import "github.com/vigilhealth/vigil/internal/input"

// What handlers are made of: a body becomes what it asks for, and what an engine gives becomes the answer.

// Read decodes a body and reads from it what it asks for; a refusal names every field that is wrong.
func Read[B, V any](c *Call, read func(B, *input.Checks) V) (V, error) {
	return readBy(c.Decode, read)
}

// ReadOptional is Read where the body may be left out.
func ReadOptional[B, V any](c *Call, read func(B, *input.Checks) V) (V, error) {
	return readBy(c.DecodeOptional, read)
}

func readBy[B, V any](decode func(any) error, read func(B, *input.Checks) V) (value V, err error) {
	var body B
	if err := decode(&body); err != nil {
		return value, err
	}
	checks := input.NewChecks()
	value = read(body, checks)
	return value, checks.Err()
}

// Show answers with a view of what a function gave, or returns the error that it gave instead.
func Show[T, V any](answer func(any) error, view func(T) V) func(T, error) error {
	return func(value T, err error) error {
		if err != nil {
			return err
		}
		return answer(view(value))
	}
}

// Views shows each row.
func Views[T, V any](rows []T, view func(T) V) []V {
	views := make([]V, len(rows))
	for i, row := range rows {
		views[i] = view(row)
	}
	return views
}
