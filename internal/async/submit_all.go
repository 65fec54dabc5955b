package async

import "context"

// Result is the result of one of several items.
type Result[Out any] struct {
	Out Out
	Err error
}

// SubmitAll submits items to Run in order and waits for all results. Items beyond the free space of the queue fail with [ErrGroupFull]. If ctx ends
// first, some items may still be stored.
func (g *GroupCommit[In, Out]) SubmitAll(ctx context.Context, ins []In) []Result[Out] {
	items := make([]*GroupItem[In, Out], len(ins))
	for i, in := range ins {
		own := newItem[In, Out](in)
		if !g.enqueue(own) {
			break // and none after it, to keep the order
		}
		items[i] = own
	}
	answers := make([]Result[Out], len(ins))
	for i, own := range items {
		if own == nil {
			answers[i].Err = ErrGroupFull
			continue
		}
		answers[i] = g.await(ctx, own)
	}
	return answers
}

func (g *GroupCommit[In, Out]) enqueue(own *GroupItem[In, Out]) bool {
	select {
	case g.queue <- own:
		return true
	default:
		return false
	}
}

func (g *GroupCommit[In, Out]) await(ctx context.Context, own *GroupItem[In, Out]) Result[Out] {
	select {
	case <-own.done:
	case <-ctx.Done():
		return Result[Out]{Err: ctx.Err()}
	case <-g.ended:
		if !own.isDone() { // Run stopped before it took the item
			return Result[Out]{Err: ErrGroupStopped}
		}
	}
	return Result[Out]{own.Out, own.Err}
}
