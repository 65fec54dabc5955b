package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
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

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

// fetch unpacks a backup into a folder and returns its manifest, after comparing the hash of the database with it.
func fetch(ctx context.Context, store *Store, keys Keys, name, folder string) (Manifest, error) {
	stored, plain, err := store.open(ctx, keys, name)
	if err != nil {
		return Manifest{}, err
	}
	defer func() { _ = stored.Close() }() // read only
	packed, err := gzip.NewReader(plain)
	if err != nil {
		return Manifest{}, fmt.Errorf("unpack backup: %w", err)
	}
	m, err := unpack(tar.NewReader(packed), folder)
	if err != nil {
		return m, fmt.Errorf("unpack backup: %w", err)
	}
	found, err := hashOf(ctx, filepath.Join(folder, databaseFile), nil)
	if err == nil && found != m.SHA256 {
		err = errors.New("the database in the backup does not match the hash in its manifest")
	}
	return m, err
}

// open opens a backup and returns its content; the caller closes the file. It returns a [MissingKeyError] if the ring does not open it.
func (s *Store) open(ctx context.Context, keys Keys, name string) (file io.ReadCloser, content io.Reader, err error) {
	if file, err = s.blobs.Read(ctx, name); err != nil {
		return nil, nil, fmt.Errorf("read backup %s: %w", name, err)
	}
	content, err = age.Decrypt(file, ring{keys.Ring})
	if err == nil {
		return file, content, nil
	}
	if missing, ok := errors.AsType[*MissingKeyError](err); ok {
		err = missing
	} else {
		err = fmt.Errorf("decrypt backup: %w", err)
	}
	return nil, nil, errors.Join(err, file.Close())
}

// CheckKeys returns a [MissingKeyError] if the ring does not open the backup. It reads only the beginning.
func (s *Store) CheckKeys(ctx context.Context, keys Keys, name string) error {
	file, _, err := s.open(ctx, keys, name)
	if err != nil {
		return err
	}
	return file.Close()
}

// unpack reads the manifest and the database, in this order, and nothing else.
func unpack(archive *tar.Reader, folder string) (m Manifest, err error) {
	if err := expectEntry(archive, manifestFile); err != nil {
		return m, err
	}
	if err := json.NewDecoder(io.LimitReader(archive, 1<<20)).Decode(&m); err != nil {
		return m, fmt.Errorf("read the manifest: %w", err)
	}
	if err := expectEntry(archive, databaseFile); err != nil {
		return m, err
	}
	f, err := os.OpenFile(filepath.Join(folder, databaseFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // a file that this package wrote
	if err != nil {
		return m, err
	}
	_, err = io.Copy(f, archive)
	return m, errors.Join(err, f.Sync(), f.Close())
}

func expectEntry(archive *tar.Reader, name string) error {
	header, err := archive.Next()
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	if header.Name != name {
		return fmt.Errorf("expected %s", name)
	}
	return nil
}

// Opened is a PocketBase app on a data folder; Close releases the folder.
type Opened struct {
	App   core.App
	Close func() error
}

// Verify restores a backup into a scratch folder below dir and checks it: the hash, SQLite's own checks, the row counts, and the whole audit chain.
// open opens a data folder.
func Verify(ctx context.Context, store *Store, keys Keys, name, dir string, open func(dir string) (Opened, error)) (Manifest, error) {
	scratch, cleanup, err := scratchDir(dir)
	if err != nil {
		return Manifest{}, err
	}
	defer cleanup()
	m, err := fetch(ctx, store, keys, name, scratch)
	if err != nil {
		return m, err
	}
	if err := withDatabase(filepath.Join(scratch, databaseFile), func(db *dbx.DB) error { return check(ctx, db, m) }); err != nil {
		return m, err
	}
	opened, err := open(scratch)
	if err != nil {
		return m, fmt.Errorf("open the restored folder: %w", err)
	}
	result, err := audit.Verify(opened.App, nil)
	if err := errors.Join(err, opened.Close()); err != nil {
		return m, err
	}
	if !result.Valid {
		return m, fmt.Errorf("the audit trail in the backup is invalid: entry %d is the first invalid one (%s)", *result.FirstInvalidID, result.Problem)
	}
	return m, nil
}

// check runs SQLite's own checks and compares the database with the manifest.
func check(ctx context.Context, db *dbx.DB, m Manifest) error {
	var problems []string
	if err := db.NewQuery("PRAGMA integrity_check(5)").WithContext(ctx).Column(&problems); err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	if len(problems) != 1 || problems[0] != "ok" {
		return fmt.Errorf("the database in the backup is damaged: %d problems", len(problems))
	}
	counts, head, err := count(ctx, db)
	if err != nil {
		return err
	}
	if counts != m.Counts || head != m.AuditHead {
		return errors.New("the database in the backup does not match its manifest")
	}
	return nil
}

// Restore replaces the database of a data folder with a backup, and fails while another process has the folder open. It refuses to replace an
// existing database unless replace is set; then it moves the database aside and returns the folder that holds it.
func Restore(ctx context.Context, store *Store, keys Keys, name, dir string, replace bool, now time.Time) (m Manifest, aside string, err error) {
	lock, err := lockExclusive(dir)
	if err != nil {
		return m, "", err
	}
	defer func() { _ = lock.Close() }() // the lock ends with the process in any case
	existing, err := databaseFiles(dir)
	if err != nil {
		return m, "", err
	}
	if len(existing) > 0 && !replace {
		return m, "", errors.New("the data folder already has a database: choose another --dir, or use --replace to move it aside")
	}
	scratch, cleanup, err := scratchDir(dir)
	if err != nil {
		return m, "", err
	}
	defer cleanup()
	if m, err = fetch(ctx, store, keys, name, scratch); err != nil {
		return m, "", err
	}
	if err := markDeliveriesUnconfirmed(ctx, filepath.Join(scratch, databaseFile)); err != nil {
		return m, "", err
	}
	if len(existing) > 0 {
		aside = filepath.Join(dir, "before-restore-"+now.UTC().Format(nameTime))
		if err := moveAside(existing, aside); err != nil {
			return m, aside, err
		}
	}
	if err := os.Rename(filepath.Join(scratch, databaseFile), filepath.Join(dir, databaseFile)); err != nil {
		return m, aside, fmt.Errorf("move the database into place: %w", err)
	}
	return m, aside, syncFolder(dir)
}

// PrepareImported prepares a database that came into the data folder by other means, such as a replica, as Restore prepares a backup. It does nothing without
// a database, and fails while another process has the folder open.
func PrepareImported(ctx context.Context, dir string) error {
	lock, err := lockExclusive(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // the lock ends with the process in any case
	file := filepath.Join(dir, databaseFile)
	if !exists(file) {
		return nil
	}
	return markDeliveriesUnconfirmed(ctx, file)
}

// markDeliveriesUnconfirmed requires the EMR to be searched for every unconfirmed delivery before it is sent again: the database that this one replaces
// may have delivered it.
func markDeliveriesUnconfirmed(ctx context.Context, file string) error {
	// Rollback journal: only this file is renamed afterwards. The service switches back to WAL.
	db := sqlite.File(file, "busy_timeout(10000)", "journal_mode(DELETE)")
	_, err := db.NewQuery("UPDATE transmissions SET ambiguous = TRUE WHERE status != 'transmitted'").WithContext(ctx).Execute()
	if err != nil {
		err = fmt.Errorf("prepare the restored database: %w", err)
	}
	return errors.Join(err, db.Close())
}

// databaseFiles returns the database, its journals, and Litestream's replication state, which would not match another database.
func databaseFiles(dir string) ([]string, error) {
	existing, err := filepath.Glob(filepath.Join(dir, databaseFile+"*"))
	if err != nil {
		return nil, fmt.Errorf("read the data folder: %w", err)
	}
	if replica := filepath.Join(dir, "."+databaseFile+"-litestream"); exists(replica) {
		existing = append(existing, replica)
	}
	return existing, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func moveAside(files []string, folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return fmt.Errorf("create a folder for the old database: %w", err)
	}
	for _, file := range files {
		if err := os.Rename(file, filepath.Join(folder, filepath.Base(file))); err != nil {
			return fmt.Errorf("move the old database aside: %w", err)
		}
	}
	return nil
}

// syncFolder makes the rename survive a power loss.
func syncFolder(dir string) error {
	folder, err := os.Open(dir) //nolint:gosec // the operator's data folder
	if err != nil {
		return fmt.Errorf("sync the data folder: %w", err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}
