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

// fetch brings a backup into a folder and returns its manifest, once the database is what the manifest says.
func fetch(ctx context.Context, store *Store, keys Keys, name, folder string) (Manifest, error) {
	stored, err := store.place.Read(ctx, name)
	if err != nil {
		return Manifest{}, fmt.Errorf("read backup %s: %w", name, err)
	}
	defer func() { _ = stored.Close() }() // read only
	plain, err := age.Decrypt(stored, ring{keys.Ring})
	if errors.Is(err, age.ErrIncorrectIdentity) {
		return Manifest{}, errors.New("none of VIGIL_ENCRYPTION_KEYS opens this backup: add the key that was in use when it was made")
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("decrypt backup: %w", err)
	}
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
		err = errors.New("the database in the backup is not the one that was put in")
	}
	return m, err
}

// unpack reads manifest and database, in this order, and nothing else.
func unpack(archive *tar.Reader, folder string) (m Manifest, err error) {
	if err := expect(archive, manifestFile); err != nil {
		return m, err
	}
	if err := json.NewDecoder(io.LimitReader(archive, 1<<20)).Decode(&m); err != nil {
		return m, fmt.Errorf("read the manifest: %w", err)
	}
	if err := expect(archive, databaseFile); err != nil {
		return m, err
	}
	f, err := os.OpenFile(filepath.Join(folder, databaseFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // a file of ours
	if err != nil {
		return m, err
	}
	_, err = io.Copy(f, archive)
	return m, errors.Join(err, f.Sync(), f.Close())
}

func expect(archive *tar.Reader, name string) error {
	header, err := archive.Next()
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	if header.Name != name {
		return fmt.Errorf("expected %s", name)
	}
	return nil
}

// Opened is PocketBase on a data folder; Close lets go of it.
type Opened struct {
	App   core.App
	Close func() error
}

// Verify brings a backup back to a scratch folder below dir and walks through it: its hash, the database's own checks, the
// counts, and the audit chain from the first entry to the last. open opens a data folder.
func Verify(ctx context.Context, store *Store, keys Keys, name, dir string, open func(dir string) (Opened, error)) (Manifest, error) {
	scratch, leave, err := room(dir)
	if err != nil {
		return Manifest{}, err
	}
	defer leave()
	m, err := fetch(ctx, store, keys, name, scratch)
	if err != nil {
		return m, err
	}
	if err := reading(filepath.Join(scratch, databaseFile), func(db *dbx.DB) error { return check(ctx, db, m) }); err != nil {
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
		return m, fmt.Errorf("the audit trail in the backup does not hold: entry %d is the first that does not fit (%s)", *result.FirstInvalidID, result.Problem)
	}
	return m, nil
}

// check runs the database's own checks and compares with the manifest.
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
		return errors.New("the database in the backup does not hold what its manifest says")
	}
	return nil
}

// Restore puts a backup in the place of the data folder's database, and fails while anything has that folder open. An
// existing database is refused unless replace is set; then it is moved aside, and the folder it went to is returned.
func Restore(ctx context.Context, store *Store, keys Keys, name, dir string, replace bool, now time.Time) (m Manifest, aside string, err error) {
	lock, err := claim(dir)
	if err != nil {
		return m, "", err
	}
	defer func() { _ = lock.Close() }() // ends with the process in any case
	there, err := databaseFiles(dir)
	if err != nil {
		return m, "", err
	}
	if len(there) > 0 && !replace {
		return m, "", errors.New("there is a database in the data folder: give another --dir, or --replace to move it aside")
	}
	scratch, leave, err := room(dir)
	if err != nil {
		return m, "", err
	}
	defer leave()
	if m, err = fetch(ctx, store, keys, name, scratch); err != nil {
		return m, "", err
	}
	if err := distrustDeliveries(ctx, filepath.Join(scratch, databaseFile)); err != nil {
		return m, "", err
	}
	if len(there) > 0 {
		aside = filepath.Join(dir, "before-restore-"+now.UTC().Format(nameTime))
		if err := moveAside(there, aside); err != nil {
			return m, aside, err
		}
	}
	if err := os.Rename(filepath.Join(scratch, databaseFile), filepath.Join(dir, databaseFile)); err != nil {
		return m, aside, fmt.Errorf("put the database in place: %w", err)
	}
	return m, aside, syncFolder(dir)
}

// Adopt prepares a database that came into the data folder by other means, such as a replica, as Restore does one of its
// own. Without a database there is nothing to do. It fails while anything has the folder open.
func Adopt(ctx context.Context, dir string) error {
	lock, err := claim(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // ends with the process in any case
	file := filepath.Join(dir, databaseFile)
	if !exists(file) {
		return nil
	}
	return distrustDeliveries(ctx, file)
}

// distrustDeliveries makes whatever is not known to be delivered be looked for at the EMR before it is sent: this database
// is older than the one it follows, which may have delivered it.
func distrustDeliveries(ctx context.Context, file string) error {
	// Without a log of its own: what is renamed afterwards is this file alone. The service switches back.
	db := sqlite.File(file, "busy_timeout(10000)", "journal_mode(DELETE)")
	_, err := db.NewQuery("UPDATE transmissions SET ambiguous = TRUE WHERE status != 'transmitted'").WithContext(ctx).Execute()
	if err != nil {
		err = fmt.Errorf("prepare the restored database: %w", err)
	}
	return errors.Join(err, db.Close())
}

// databaseFiles are the database, its journals, and what Litestream remembers of having copied it: beside another database
// that would be wrong.
func databaseFiles(dir string) ([]string, error) {
	there, err := filepath.Glob(filepath.Join(dir, databaseFile+"*"))
	if err != nil {
		return nil, fmt.Errorf("look into the data folder: %w", err)
	}
	if replica := filepath.Join(dir, "."+databaseFile+"-litestream"); exists(replica) {
		there = append(there, replica)
	}
	return there, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func moveAside(files []string, folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return fmt.Errorf("make a folder for the old database: %w", err)
	}
	for _, file := range files {
		if err := os.Rename(file, filepath.Join(folder, filepath.Base(file))); err != nil {
			return fmt.Errorf("move the old database aside: %w", err)
		}
	}
	return nil
}

// syncFolder makes the new name survive a loss of power.
func syncFolder(dir string) error {
	folder, err := os.Open(dir) //nolint:gosec // the operator's data folder
	if err != nil {
		return fmt.Errorf("sync the data folder: %w", err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}
