package observations

import "context"

// Answer is what became of one of several readings.
type Answer struct {
	Outcome Outcome
	Err     error
}

// SubmitAll hands over readings, in order of measurement, and returns once each is durably stored, or refused.
func (w *Writer) SubmitAll(ctx context.Context, list []Submission) []Answer {
	answers := make([]Answer, len(list))
	for i, a := range w.group.SubmitAll(ctx, list) {
		answers[i] = Answer{a.Out, waited(a.Err)}
	}
	return answers
}
