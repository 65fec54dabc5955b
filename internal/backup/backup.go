// Package backup creates, verifies and restores backups while the service runs. A backup is one file: a consistent copy of the database with a
// manifest, compressed and encrypted with age before it leaves the machine. Any key of the encryption ring opens it, and so does every further
// recipient that the operator configured. It is stored in a folder or an S3-compatible bucket, see [BlobStore].
//
// A backup counts only after [Verify] has restored it into a scratch folder and checked it.
package backup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

// Store holds the backups of one practice.
type Store struct{ blobs *BlobStore }

// NewStore returns a Store that keeps its backups in p.
func NewStore(p *BlobStore) *Store { return &Store{p} }

// Close releases the blob store.
func (s *Store) Close() error { return s.blobs.Close() }

// probeName is the file that [Store.Probe] writes; no backup has this name.
const probeName = "check"

// Probe checks that a backup can be written, listed and removed.
func (s *Store) Probe(ctx context.Context) error { return s.blobs.Probe(ctx, probeName) }

// Stored is one backup in the store.
type Stored struct {
	Name      string
	CreatedAt time.Time
	Size      int64 // bytes
}

// List returns every complete backup, newest first.
func (s *Store) List(ctx context.Context) ([]Stored, error) {
	files, err := s.blobs.List(ctx, prefix)
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

// Find returns the named backup; "" or "latest" means the newest.
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
		return Stored{}, fmt.Errorf("there is no backup in %s: name the path of a backup's file, or set VIGIL_BACKUP_FOLDER or the bucket", s.blobs.Where())
	}
	return Stored{}, fmt.Errorf("there is no backup named %q; run the list command to see the backups", name)
}

// Prune removes all but the newest backups and returns how many it removed. The newest verified backup stays regardless of its age, and nothing is
// removed while no backup is verified: copies of a silently damaged database must not displace the last good one.
// Source: docs/decisions/operating.md, "Verified backups".
func (s *Store) Prune(ctx context.Context, newest int, verified []string) (removed int, err error) {
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
		if err := s.blobs.Remove(ctx, stored[i].Name); err != nil {
			return removed, fmt.Errorf("remove backup %s: %w", stored[i].Name, err)
		}
		removed++
	}
	return removed, nil
}

// put streams a backup into the store. The file gets its name when it is complete; if write fails, nothing remains.
func (s *Store) put(ctx context.Context, name string, write func(io.Writer) error) error {
	s.clearUnfinished(ctx)
	if err := s.blobs.Write(ctx, name, write); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	return s.blobs.MakePrivate(prefix + "*")
}

// clearUnfinished removes partial files that a killed process left in a folder; a bucket never lists partial files.
func (s *Store) clearUnfinished(ctx context.Context) {
	files, err := s.blobs.List(ctx, prefix)
	if err != nil {
		return // the following write reports the cause
	}
	for _, file := range files {
		if strings.Contains(file.Name, extension+".") && strings.HasSuffix(file.Name, ".tmp") {
			_ = s.blobs.Remove(ctx, file.Name) // retried at the next backup
		}
	}
}

// unusedName returns the name of a backup created at the given time, or at the next second without one: no backup is overwritten.
func (s *Store) unusedName(ctx context.Context, at time.Time) (string, error) {
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

// keyStanza is the type of the age header stanza that holds the file key, sealed under the encryption ring.
const keyStanza = "vigil-key-ring"

// filePurpose binds a sealed file key to backups.
const filePurpose = "backup.file_key"

// ring lets age wrap file keys with the keys that protect the records: the keys that open the database open its backup, and no further key has to
// be kept.
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

// Unwrap opens the file key with the key of the ring that sealed it.
func (r ring) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	for _, stanza := range stanzas {
		if stanza.Type != keyStanza || len(stanza.Args) != 1 {
			continue
		}
		fileKey, err := r.keys.Open(string(stanza.Body), filePurpose, stanza.Args[0])
		if err == nil {
			return []byte(fileKey), nil
		}
		if id, ok := phi.KeyID(string(stanza.Body)); ok {
			return nil, &MissingKeyError{id}
		}
	}
	return nil, age.ErrIncorrectIdentity
}

// MissingKeyError reports that the ring does not open a backup, for lack of the key that sealed it or with other bytes under its name.
type MissingKeyError struct{ KeyID string }

func (e *MissingKeyError) Error() string {
	return "VIGIL_ENCRYPTION_KEYS lacks the key " + e.KeyID + ", which was in use when this backup was made: add it"
}

// Unwrap makes age try the next identity.
func (e *MissingKeyError) Unwrap() error { return age.ErrIncorrectIdentity }

// Keys encrypt and decrypt backups.
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

// CheckWritable returns an error unless files can be created in the folder, or in the parent where it would be created. It leaves no file behind.
func CheckWritable(folder string) error {
	for at := folder; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			continue // would be created
		}
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "write", Path: at, Err: errors.New("is no folder")}
		}
		if err != nil {
			return err
		}
		file, err := os.CreateTemp(at, ".vigil-check-*")
		if err != nil {
			return err
		}
		return errors.Join(file.Close(), os.Remove(file.Name()))
	}
}
