package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// Bucket is the key-value bucket of the leases in JetStream.
const Bucket = "vigil-leases"

// Key is the key of a practice's lease.
func Key(practice string) string { return "leases." + practice }

// NATSStore is a [Store] in a key-value bucket; its servers agree on each write before they answer.
type NATSStore struct {
	js       jetstream.JetStream
	practice string
	replicas int

	mu     sync.Mutex
	bucket jetstream.KeyValue
	stream jetstream.Stream
}

// NewNATSStore returns the store of a practice's lease. It makes the bucket, with so many replicas, if it is not there.
func NewNATSStore(js jetstream.JetStream, practice string, replicas int) *NATSStore {
	return &NATSStore{js: js, practice: practice, replicas: replicas}
}

// Read implements [Store]. It reads the message rather than the value, because a deletion has a revision too.
func (s *NATSStore) Read(ctx context.Context) (Entry, error) {
	_, stream, err := s.open(ctx)
	if err != nil {
		return Entry{}, err
	}
	message, err := stream.GetLastMsgForSubject(ctx, "$KV."+Bucket+"."+Key(s.practice))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Entry{}, nil
	}
	if err != nil {
		return Entry{}, fmt.Errorf("read the lease: %w", err)
	}
	return Entry{Record: parseRecord(message.Data), Revision: message.Sequence}, nil
}

// Write implements [Store].
func (s *NATSStore) Write(ctx context.Context, r Record, revision uint64) (uint64, error) {
	bucket, _, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	value, err := json.Marshal(r)
	if err != nil {
		return 0, fmt.Errorf("encode the lease: %w", err)
	}
	stored, err := bucket.Update(ctx, Key(s.practice), value, revision)
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return 0, ErrRevision
	}
	if err != nil {
		return 0, fmt.Errorf("write the lease: %w", err)
	}
	return stored, nil
}

// open finds or makes the bucket, once.
func (s *NATSStore) open(ctx context.Context) (jetstream.KeyValue, jetstream.Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != nil {
		return s.bucket, s.stream, nil
	}
	bucket, err := s.js.KeyValue(ctx, Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		bucket, err = s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: Bucket, Description: "which process writes each practice's database", History: 1, Storage: jetstream.FileStorage, Replicas: s.replicas,
		})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open the bucket of the leases: %w", err)
	}
	stream, err := s.js.Stream(ctx, "KV_"+Bucket)
	if err != nil {
		return nil, nil, fmt.Errorf("open the stream of the leases: %w", err)
	}
	s.bucket, s.stream = bucket, stream
	return bucket, stream, nil
}
