package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrGone is an event that is not in the stream, or not in the subject.
var ErrGone = errors.New("there is no such event")

// Stored is an event in the stream.
type Stored struct {
	Sequence uint64
	ID       string
	At       time.Time // when the stream stored it
	Header   map[string]string
	Data     []byte
}

// Next returns the first event of a subject from a sequence on. Errors: [ErrGone].
func (s *Stream) Next(ctx context.Context, subject string, from uint64) (Stored, error) {
	stream, err := s.js.Stream(ctx, s.options.Stream)
	if err != nil {
		return Stored{}, fmt.Errorf("find the event stream: %w", err)
	}
	message, err := stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Stored{}, ErrGone
	}
	if err != nil {
		return Stored{}, fmt.Errorf("read an event: %w", err)
	}
	header := map[string]string{}
	for _, name := range []string{DeviceHeader, ReasonHeader, PracticeHeader} {
		header[name] = message.Header.Get(name)
	}
	return Stored{message.Sequence, message.Header.Get(jetstream.MsgIDHeader), message.Time, header, message.Data}, nil
}

// All returns the events of a subject, oldest first.
func (s *Stream) All(ctx context.Context, subject string) (list []Stored, err error) {
	for from := uint64(1); ; {
		stored, err := s.Next(ctx, subject, from)
		if errors.Is(err, ErrGone) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list, from = append(list, stored), stored.Sequence+1
	}
}

// Get returns the event of a subject with a sequence. Errors: [ErrGone].
func (s *Stream) Get(ctx context.Context, subject string, sequence uint64) (Stored, error) {
	stored, err := s.Next(ctx, subject, sequence)
	if err == nil && stored.Sequence != sequence {
		err = ErrGone
	}
	return stored, err
}

// Move publishes an event under another subject and removes it from its own. It is published first, so that a kill in between leaves it twice,
// which the practice recognizes, and never loses it.
func (s *Stream) Move(ctx context.Context, sequence uint64, m Message) error {
	if err := s.Publish(ctx, m); err != nil {
		return err
	}
	stream, err := s.js.Stream(ctx, s.options.Stream)
	if err != nil {
		return fmt.Errorf("find the event stream: %w", err)
	}
	if err := stream.DeleteMsg(ctx, sequence); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("remove a moved event: %w", err)
	}
	return nil
}
