package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ConsumerName is the name of a practice's consumer in an epoch of its lease. Without a lease the epoch is 0.
func ConsumerName(practice string, epoch uint64) string {
	return practice + "_" + strconv.FormatUint(epoch, 10)
}

// epochOf returns the epoch in the name of a practice's consumer.
func epochOf(name, practice string) (epoch uint64, ok bool) {
	text, ok := strings.CutPrefix(name, practice+"_") // a practice's name has no underscore
	if !ok {
		return 0, false
	}
	epoch, err := strconv.ParseUint(text, 10, 64)
	return epoch, err == nil
}

// OldestUnconsumed returns when the oldest event was published that the practice has not stored; zero if there is none. The consumer of the
// newest epoch counts; without a consumer no event is stored.
func (s *Stream) OldestUnconsumed(ctx context.Context, practice string) (time.Time, error) {
	stream, err := s.js.Stream(ctx, s.options.Stream)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the event stream: %w", err)
	}
	var newest, stored uint64
	list := stream.ListConsumers(ctx)
	for info := range list.Info() {
		if epoch, ok := epochOf(info.Name, practice); ok && epoch >= newest {
			newest, stored = epoch, info.AckFloor.Stream
		}
	}
	if err := list.Err(); err != nil {
		return time.Time{}, fmt.Errorf("list the consumers: %w", err)
	}
	return s.oldestFrom(ctx, stream, Subject(practice), stored+1)
}

// Oldest returns when the oldest event of a subject was published; zero if there is none.
func (s *Stream) Oldest(ctx context.Context, subject string) (time.Time, error) {
	stream, err := s.js.Stream(ctx, s.options.Stream)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the event stream: %w", err)
	}
	return s.oldestFrom(ctx, stream, subject, 1)
}

func (s *Stream) oldestFrom(ctx context.Context, stream jetstream.Stream, subject string, sequence uint64) (time.Time, error) {
	message, err := stream.GetMsg(ctx, sequence, jetstream.WithGetMsgSubject(subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read the oldest event: %w", err)
	}
	return message.Time, nil
}
