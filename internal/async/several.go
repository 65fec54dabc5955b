package async

import "context"

// Answer is what became of one of several items.
type Answer[Out any] struct {
	Out Out
	Err error
}

// SubmitAll hands items to Run, in their order, and waits for all their answers. Those for which there is no room are not handed in. When ctx
// ends first some may still be stored.
func (g *Group[In, Out]) SubmitAll(ctx context.Context, ins []In) []Answer[Out] {
	items := make([]*GroupItem[In, Out], len(ins))
	for i, in := range ins {
		own := newItem[In, Out](in)
		if !g.handIn(own) {
			break // nor any after it: they are in order
		}
		items[i] = own
	}
	answers := make([]Answer[Out], len(ins))
	for i, own := range items {
		if own == nil {
			answers[i].Err = ErrGroupFull
			continue
		}
		answers[i] = g.await(ctx, own)
	}
	return answers
}

func (g *Group[In, Out]) handIn(own *GroupItem[In, Out]) bool {
	select {
	case g.queue <- own:
		return true
	default:
		return false
	}
}

func (g *Group[In, Out]) await(ctx context.Context, own *GroupItem[In, Out]) Answer[Out] {
	select {
	case <-own.done:
	case <-ctx.Done():
		return Answer[Out]{Err: ctx.Err()}
	case <-g.ended:
		if !own.answered() { // it was not among the last
			return Answer[Out]{Err: ErrGroupStopped}
		}
	}
	return Answer[Out]{own.Out, own.Err}
}
