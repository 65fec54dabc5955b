package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Bucket is the key-value bucket of the directory. Its keys are <practice>.<kind>.<hash>, and <practice>.recipient.
const Bucket = "vigil-directory"

const recipientKey = "recipient"

// retryDelay is the wait before the bucket is opened again.
const retryDelay = 2 * time.Second

// Directory holds the claims and recipients of all practices, as the bucket has them.
type Directory struct {
	js  jetstream.JetStream
	log *slog.Logger

	lock       sync.RWMutex
	claims     Claims
	recipients map[string]string
	isLoaded   bool
	changed    chan struct{} // closed at the next change
}

// New returns an empty directory.
func New(js jetstream.JetStream, log *slog.Logger) *Directory {
	return &Directory{js: js, log: log, claims: Claims{}, recipients: map[string]string{}, changed: make(chan struct{})}
}

// Create creates the bucket.
func Create(ctx context.Context, js jetstream.JetStream, replicas int) error {
	_, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: Bucket, Replicas: replicas, History: 1, Storage: jetstream.FileStorage})
	if err != nil {
		return fmt.Errorf("create the device directory: %w", err)
	}
	return nil
}

// Loaded reports whether every claim of the bucket was read once. Before, an unknown device proves nothing.
func (d *Directory) Loaded() bool {
	d.lock.RLock()
	defer d.lock.RUnlock()
	return d.isLoaded
}

// Owner returns the owner of the first identifier that any practice has claimed.
func (d *Directory) Owner(measured time.Time, ids ...ID) Owner {
	d.lock.RLock()
	defer d.lock.RUnlock()
	for _, id := range ids {
		if owner := d.claims.Owner(id, measured); owner != (Owner{}) {
			return owner
		}
	}
	return Owner{}
}

// Recipient returns the age recipient of a practice; "" if it has published none.
func (d *Directory) Recipient(practice string) string {
	d.lock.RLock()
	defer d.lock.RUnlock()
	return d.recipients[practice]
}

// Practices returns the practices that published a recipient.
func (d *Directory) Practices() []string {
	d.lock.RLock()
	defer d.lock.RUnlock()
	names := make([]string, 0, len(d.recipients))
	for name := range d.recipients {
		names = append(names, name)
	}
	return names
}

// Changed returns a channel that is closed at the next change.
func (d *Directory) Changed() <-chan struct{} {
	d.lock.RLock()
	defer d.lock.RUnlock()
	return d.changed
}

// Run keeps the directory equal to the bucket until ctx ends. After a lost connection the last state stays in use until the watch continues.
func (d *Directory) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := d.follow(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("device directory cannot be read; trying again", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryDelay):
		}
	}
}

func (d *Directory) follow(ctx context.Context) error {
	bucket, err := d.js.KeyValue(ctx, Bucket)
	if err != nil {
		return fmt.Errorf("open the device directory: %w", err)
	}
	watcher, err := bucket.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("watch the device directory: %w", err)
	}
	defer watcher.Stop() //nolint:errcheck // the connection may be gone
	for entry := range watcher.Updates() {
		d.apply(entry)
	}
	return errors.New("the watch ended")
}

// apply stores a change; nil marks the end of the initial state.
func (d *Directory) apply(entry jetstream.KeyValueEntry) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if entry == nil {
		d.isLoaded = true
	} else if err := d.store(entry); err != nil {
		d.log.Error("device directory has an unreadable entry; it is ignored", slog.String("key", entry.Key()), slog.Any("error", err))
	}
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *Directory) store(entry jetstream.KeyValueEntry) error {
	practice, rest, _ := strings.Cut(entry.Key(), ".")
	isDeleted := entry.Operation() != jetstream.KeyValuePut
	if rest == recipientKey {
		if delete(d.recipients, practice); !isDeleted {
			d.recipients[practice] = string(entry.Value())
		}
		return nil
	}
	kind, hash, found := strings.Cut(rest, ".")
	if !found {
		return errors.New("the key has no kind and hash")
	}
	id := ID{Kind(kind), hash}
	if isDeleted {
		d.claims.set(id, practice, nil)
		return nil
	}
	intervals := []Interval{}
	if err := json.Unmarshal(entry.Value(), &intervals); err != nil {
		d.claims.set(id, practice, nil) // a claim that cannot be read is none
		return fmt.Errorf("read the intervals: %w", err)
	}
	d.claims.set(id, practice, intervals)
	return nil
}
