package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

const (
	databaseFile = "data.db"
	manifestFile = "manifest.json"
)

// Manifest describes a backup; it is the first entry of the archive.
type Manifest struct {
	Version   string    `json:"version"` // of the program that created the backup
	CreatedAt time.Time `json:"created_at"`
	// SHA256 is the hash of the database file, in hex.
	SHA256 string `json:"sha256"`
	Counts Counts `json:"counts"`
	// AuditHead is the hash of the last audit entry in the backup.
	AuditHead string `json:"audit_head"`
}

// Counts are row counts of the database; [Verify] compares them.
type Counts struct {
	Patients      int64 `db:"patients" json:"patients"`
	Observations  int64 `db:"observations" json:"observations"`
	AuditEntries  int64 `db:"audit_entries" json:"audit_entries"`
	Transmissions int64 `db:"transmissions" json:"transmissions"`
}

// Create backs up the database while it is in use and returns the name of the backup, which contains everything committed before the call.
func Create(ctx context.Context, app core.App, store *Store, keys Keys, version string, now time.Time) (string, Manifest, error) {
	if err := store.Probe(ctx); err != nil { // fail before a database of gigabytes is copied
		return "", Manifest{}, err
	}
	scratch, cleanup, err := scratchDir(app.DataDir())
	if err != nil {
		return "", Manifest{}, err
	}
	defer cleanup()
	copied := filepath.Join(scratch, databaseFile)
	if err := copyDatabase(ctx, app, copied); err != nil {
		return "", Manifest{}, err
	}
	manifest, err := describe(ctx, copied, version, now)
	if err != nil {
		return "", Manifest{}, err
	}
	name, err := store.unusedName(ctx, now)
	if err != nil {
		return "", Manifest{}, err
	}
	err = store.put(ctx, name, func(w io.Writer) error { return seal(ctx, w, keys, manifest, copied) })
	return name, manifest, err
}

// copyDatabase writes a consistent copy in a single read transaction, which blocks no writer.
func copyDatabase(ctx context.Context, app core.App, target string) error {
	db, ok := app.ConcurrentDB().(*dbx.DB)
	if !ok {
		return fmt.Errorf("copy the database: a %T is not a database connection", app.ConcurrentDB())
	}
	if err := sqlite.Copy(ctx, db.DB(), target, async.ThrottleAlways().Rest); err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	return nil
}

func describe(ctx context.Context, file, version string, now time.Time) (Manifest, error) {
	m := Manifest{Version: version, CreatedAt: now.UTC()}
	err := withDatabase(file, func(db *dbx.DB) (err error) {
		if err := sqlite.QuickCheck(ctx, db); errors.Is(err, sqlite.ErrDamaged) {
			return ErrDamaged
		} else if err != nil {
			return err
		}
		m.Counts, m.AuditHead, err = count(ctx, db)
		return err
	})
	if err != nil {
		return m, err
	}
	m.SHA256, err = hashOf(ctx, file, async.ThrottleAlways())
	return m, err
}

// ErrDamaged reports that the source database is damaged, so that a copy would be unusable.
var ErrDamaged = errors.New("the database is damaged: no backup was taken, and none is removed; see docs/operations.md, \"A damaged database\"")

func count(ctx context.Context, db dbx.Builder) (c Counts, head string, err error) {
	err = db.NewQuery(`SELECT (SELECT COUNT(*) FROM patients) AS patients, (SELECT COUNT(*) FROM observations) AS observations,
		(SELECT COUNT(*) FROM audit_log) AS audit_entries, (SELECT COUNT(*) FROM transmissions) AS transmissions`).WithContext(ctx).One(&c)
	if err != nil {
		return c, "", fmt.Errorf("count the rows in the backup: %w", err)
	}
	err = db.NewQuery("SELECT hash FROM audit_log ORDER BY id DESC LIMIT 1").WithContext(ctx).Row(&head)
	if err != nil && !collections.IsNotFound(err) {
		return c, "", fmt.Errorf("read the audit head of the backup: %w", err)
	}
	return c, head, nil
}

// withDatabase opens a database file that no other process has open.
func withDatabase(file string, use func(*dbx.DB) error) error {
	db := sqlite.File(file, "query_only(ON)")
	return errors.Join(use(db), db.Close())
}

func hashOf(ctx context.Context, file string, p *async.Throttle) (string, error) {
	f, err := os.Open(file) //nolint:gosec // a file that this package wrote
	if err != nil {
		return "", fmt.Errorf("hash the copy: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	h := sha256.New()
	if _, err := io.Copy(h, p.Reader(ctx, f)); err != nil {
		return "", fmt.Errorf("hash the copy: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// seal writes the manifest and the database, compressed and encrypted.
func seal(ctx context.Context, w io.Writer, keys Keys, m Manifest, file string) error {
	to, err := keys.recipients()
	if err != nil {
		return err
	}
	sealed, err := age.Encrypt(w, to...)
	if err != nil {
		return fmt.Errorf("encrypt the backup: %w", err)
	}
	packed, err := gzip.NewWriterLevel(sealed, gzip.BestSpeed)
	if err != nil {
		return fmt.Errorf("pack the backup: %w", err)
	}
	archive := tar.NewWriter(packed)
	for _, step := range []func() error{func() error { return pack(ctx, archive, m, file) }, archive.Close, packed.Close, sealed.Close} {
		if err := step(); err != nil { // the later steps would return the same error
			return err
		}
	}
	return nil
}

func pack(ctx context.Context, archive *tar.Writer, m Manifest, file string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the manifest: %w", err)
	}
	if err := archive.WriteHeader(&tar.Header{Name: manifestFile, Mode: 0o600, Size: int64(len(text)), ModTime: m.CreatedAt}); err != nil {
		return fmt.Errorf("pack the manifest: %w", err)
	}
	if _, err := archive.Write(text); err != nil {
		return fmt.Errorf("pack the manifest: %w", err)
	}
	f, err := os.Open(file) //nolint:gosec // a file that this package wrote
	if err != nil {
		return fmt.Errorf("pack the database: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("pack the database: %w", err)
	}
	if err := archive.WriteHeader(&tar.Header{Name: databaseFile, Mode: 0o600, Size: info.Size(), ModTime: m.CreatedAt}); err != nil {
		return fmt.Errorf("pack the database: %w", err)
	}
	if _, err := io.Copy(archive, async.ThrottleAlways().Reader(ctx, f)); err != nil {
		return fmt.Errorf("pack the database: %w", err)
	}
	return nil
}
