package emr

import "context"

type deliveryKey struct{}

// OneDelivery has all calls that are made with the context share the quick retries of one delivery: looking for an observation, sending it and
// looking again take them from the same three. Source: docs/decisions/transmissions.md, "Immediate retries".
func OneDelivery(ctx context.Context) context.Context {
	return context.WithValue(ctx, deliveryKey{}, new(int))
}

// quickRetriesUsed counts the quick retries of the delivery that a call belongs to, else of the call alone.
func quickRetriesUsed(ctx context.Context) *int {
	if used, ok := ctx.Value(deliveryKey{}).(*int); ok {
		return used
	}
	return new(int)
}
