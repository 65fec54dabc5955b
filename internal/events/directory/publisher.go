package directory

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// Publisher publishes the claims of one practice.
type Publisher struct {
	js       jetstream.JetStream
	practice string
	// known is what the bucket has of the practice; nil before it was read.
	known map[string]string
}

// NewPublisher returns a publisher of a practice.
func NewPublisher(js jetstream.JetStream, practice string) *Publisher {
	return &Publisher{js: js, practice: practice}
}

// Reset makes the next publication read the bucket again, in case someone else changed the practice's keys.
func (p *Publisher) Reset() { p.known = nil }

// Publish makes the practice's part of the bucket equal to its claims and its recipient. After an error the next call repeats what is missing.
func (p *Publisher) Publish(ctx context.Context, recipient string, claims map[ID][]Interval) error {
	bucket, err := p.js.KeyValue(ctx, Bucket)
	if err != nil {
		return fmt.Errorf("open the device directory: %w", err)
	}
	if p.known == nil {
		if p.known, err = p.read(ctx, bucket); err != nil {
			return err
		}
	}
	wanted := map[string]string{p.practice + "." + recipientKey: recipient}
	for id, intervals := range claims {
		if intervals == nil {
			intervals = []Interval{}
		}
		value, err := json.Marshal(intervals)
		if err != nil {
			return fmt.Errorf("write the intervals: %w", err)
		}
		wanted[p.practice+"."+string(id.Kind)+"."+id.Hash] = string(value)
	}
	for key := range p.known { // first, so that a moved device is rather unassigned for a moment than claimed twice
		if _, stays := wanted[key]; stays {
			continue
		}
		if err := bucket.Delete(ctx, key); err != nil {
			return fmt.Errorf("withdraw a claim: %w", err)
		}
		delete(p.known, key)
	}
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(wanted))) { // the recipient before the claims that need it
		value := wanted[key]
		if p.known[key] == value {
			continue
		}
		if _, err := bucket.PutString(ctx, key, value); err != nil {
			return fmt.Errorf("publish a claim: %w", err)
		}
		p.known[key] = value
	}
	return nil
}

// read returns the practice's keys and values in the bucket.
func (p *Publisher) read(ctx context.Context, bucket jetstream.KeyValue) (map[string]string, error) {
	watcher, err := bucket.Watch(ctx, p.practice+".>", jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("read the practice's claims: %w", err)
	}
	defer watcher.Stop() //nolint:errcheck // the connection may be gone
	known := map[string]string{}
	for {
		select {
		case entry, ok := <-watcher.Updates():
			switch {
			case !ok:
				return nil, fmt.Errorf("read the practice's claims: %w", ctx.Err())
			case entry == nil:
				return known, nil
			}
			known[entry.Key()] = string(entry.Value())
		case <-ctx.Done():
			return nil, fmt.Errorf("read the practice's claims: %w", ctx.Err())
		}
	}
}
