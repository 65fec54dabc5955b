package emr

import "context"

type retryBudgetKey struct{}

// WithSharedRetries makes all calls with the returned context share the three quick retries of one delivery: searching for an observation,
// sending it and searching again. Source: docs/decisions/transmissions.md, "Immediate retries".
func WithSharedRetries(ctx context.Context) context.Context {
	return context.WithValue(ctx, retryBudgetKey{}, new(int))
}

// quickRetriesUsed returns the counter of the delivery in ctx, or a new one for a call of its own.
func quickRetriesUsed(ctx context.Context) *int {
	if used, ok := ctx.Value(retryBudgetKey{}).(*int); ok {
		return used
	}
	return new(int)
}
