// Package backup knows how a copy of everything is taken while the service runs, how it is proven to be good, and how it
// comes back. A backup is one file: the database as it was at one moment, with a manifest, packed and encrypted with age
// before it leaves the machine. It opens with any key of the encryption ring, and for whoever else the operator named as
// recipient. Where it is kept is a folder or an S3-compatible bucket, which package place knows.
//
// It refuses to trust: a backup counts only when verify has brought it back to a scratch folder and walked through it.
package backup

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/vigilhealth/vigil/internal/phi"
)

const (
	prefix    = "vigil-"
	extension = ".tar.gz.age"
	nameTime  = "20060102T150405Z"
)

// Store is where backups are kept: one place for one practice.
type Store struct{ place *BlobStore }

// NewStore keeps backups in a place.
func NewStore(p *BlobStore) *Store { return &Store{p} }

// Close lets go of the place.
func (s *Store) Close() error { return s.place.Close() }

// probeName is what [Store.Probe] writes; no backup is called so.
const probeName = "check"

// Probe proves that a backup could be written, found and removed.
func (s *Store) Probe(ctx context.Context) error { return s.place.Probe(ctx, probeName) }

// Stored is one backup in the store.
type Stored struct {
	Name      string
	CreatedAt time.Time
	Size      int64 // bytes
}

// List is every finished backup, newest first.
func (s *Store) List(ctx context.Context) ([]Stored, error) {
	files, err := s.place.List(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	var stored []Stored
	for _, file := range files {
		if at, ok := createdAt(file.Name); ok {
			stored = append(stored, Stored{Name: file.Name, CreatedAt: at, Size: file.Size})
		}
	}
	slices.SortFunc(stored, func(a, b Stored) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return stored, nil
}

// Find is the named backup; "" or "latest" means the newest.
func (s *Store) Find(ctx context.Context, name string) (Stored, error) {
	stored, err := s.List(ctx)
	if err != nil {
		return Stored{}, err
	}
	for _, one := range stored {
		if one.Name == name || name == "" || name == "latest" {
			return one, nil
		}
	}
	if len(stored) == 0 {
		return Stored{}, fmt.Errorf("there is no backup in %s", s.place.Where())
	}
	return Stored{}, fmt.Errorf("there is no backup named %q; list shows which there are", name)
}

// Keep removes all but the newest backups and returns how many went. The newest of those that were proven to be good stays whatever its age, and
// while none was, nothing is removed: copies of a database that was damaged unnoticed are not to displace the last good one.
// Source: docs/decisions/operating.md, "Verified backups".
func (s *Store) Keep(ctx context.Context, newest int, verified []string) (removed int, err error) {
	stored, err := s.List(ctx)
	if err != nil {
		return 0, err
	}
	good := slices.IndexFunc(stored, func(k Stored) bool { return slices.Contains(verified, k.Name) })
	if good < 0 {
		return 0, nil
	}
	for i := max(newest, 1); i < len(stored); i++ {
		if i == good {
			continue
		}
		if err := s.place.Remove(ctx, stored[i].Name); err != nil {
			return removed, fmt.Errorf("remove backup %s: %w", stored[i].Name, err)
		}
		removed++
	}
	return removed, nil
}

// put streams a backup into the store. It gets its name when it is whole; when write fails nothing is left.
func (s *Store) put(ctx context.Context, name string, write func(io.Writer) error) error {
	s.clearUnfinished(ctx)
	if err := s.place.Write(ctx, name, write); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	return s.place.Shut(prefix + "*")
}

// clearUnfinished removes what was being written to a folder when its process was killed; a bucket shows no such thing.
func (s *Store) clearUnfinished(ctx context.Context) {
	files, err := s.place.List(ctx, prefix)
	if err != nil {
		return // the write is about to say why
	}
	for _, file := range files {
		if strings.Contains(file.Name, extension+".") && strings.HasSuffix(file.Name, ".tmp") {
			_ = s.place.Remove(ctx, file.Name) // tried again the next time
		}
	}
}

// freeName is that of a backup taken then, or in the first second after it of which there is none: nothing is written over.
func (s *Store) freeName(ctx context.Context, at time.Time) (string, error) {
	stored, err := s.List(ctx)
	if err != nil {
		return "", err
	}
	for ; ; at = at.Add(time.Second) {
		if name := nameOf(at); !slices.ContainsFunc(stored, func(k Stored) bool { return k.Name == name }) {
			return name, nil
		}
	}
}

func nameOf(at time.Time) string { return prefix + at.UTC().Format(nameTime) + extension }

func createdAt(name string) (time.Time, bool) {
	stamp, ok := strings.CutSuffix(strings.TrimPrefix(name, prefix), extension)
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(nameTime, stamp)
	return at, err == nil
}

// keyStanza is the line in an age header that holds the file key, sealed under the encryption ring.
const keyStanza = "vigil-key-ring"

// filePurpose binds a sealed file key to backups.
const filePurpose = "backup.file_key"

// ring lets age wrap file keys with the keys that protect the records: what opens the database opens its backup, and
// nothing else has to be kept.
type ring struct{ keys *phi.KeyRing }

var (
	_ age.Recipient = ring{}
	_ age.Identity  = ring{}
)

// Wrap seals the file key under the first key of the ring.
func (r ring) Wrap(fileKey []byte) ([]*age.Stanza, error) {
	id := rand.Text()
	sealed, err := r.keys.Seal(string(fileKey), filePurpose, id)
	if err != nil {
		return nil, fmt.Errorf("seal file key: %w", err)
	}
	return []*age.Stanza{{Type: keyStanza, Args: []string{id}, Body: []byte(sealed)}}, nil
}

// Unwrap opens the file key with whichever key of the ring sealed it.
func (r ring) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	for _, stanza := range stanzas {
		if stanza.Type != keyStanza || len(stanza.Args) != 1 {
			continue
		}
		if fileKey, err := r.keys.Open(string(stanza.Body), filePurpose, stanza.Args[0]); err == nil {
			return []byte(fileKey), nil
		}
	}
	return nil, age.ErrIncorrectIdentity
}

// Keys open and seal backups.
type Keys struct {
	Ring *phi.KeyRing
	// Recipients are further age recipients ("age1..."), such as the public half of a key in a safe.
	Recipients []string
}

func (k Keys) recipients() ([]age.Recipient, error) {
	to := []age.Recipient{ring{k.Ring}}
	for _, text := range k.Recipients {
		recipient, err := age.ParseX25519Recipient(text)
		if err != nil {
			return nil, fmt.Errorf("backup recipient: %w", err)
		}
		to = append(to, recipient)
	}
	return to, nil
}
