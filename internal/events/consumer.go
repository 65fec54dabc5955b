package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// ackWait is when the server delivers an unacknowledged event again; the reader extends it while it works on the event.
	ackWait = time.Minute
	// maxUnacknowledged bounds the events that a practice has in work.
	maxUnacknowledged = 512
)

// ErrNewerEpoch is a consumer of an epoch that another process has succeeded.
var ErrNewerEpoch = errors.New("a consumer of a newer epoch exists")

// Consumer creates the practice's consumer of an epoch, and deletes its earlier ones. It delivers the events from a time on; from the
// beginning for zero. It is created again at each start, because the position is in the database of the practice, which may have been restored.
func (s *Stream) Consumer(ctx context.Context, practice string, epoch uint64, from time.Time) (jetstream.Consumer, error) {
	stream, err := s.js.Stream(ctx, s.options.Stream)
	if err != nil {
		return nil, fmt.Errorf("find the event stream: %w", err)
	}
	names := stream.ConsumerNames(ctx)
	for name := range names.Name() {
		older, ok := epochOf(name, practice)
		if !ok {
			continue
		}
		if older > epoch {
			return nil, ErrNewerEpoch
		}
		if err := stream.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return nil, fmt.Errorf("delete an earlier consumer: %w", err)
		}
	}
	if err := names.Err(); err != nil {
		return nil, fmt.Errorf("list the consumers: %w", err)
	}
	config := jetstream.ConsumerConfig{
		Durable: ConsumerName(practice, epoch), FilterSubject: Subject(practice), AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait,
		MaxAckPending: maxUnacknowledged, DeliverPolicy: jetstream.DeliverAllPolicy,
	}
	if !from.IsZero() {
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &from
	}
	consumer, err := stream.CreateConsumer(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("create the consumer: %w", err)
	}
	return consumer, nil
}

// Name returns the name of the stream.
func (s *Stream) Name() string { return s.options.Stream }
