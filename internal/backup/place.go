package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// probeName is what [Store.Probe] writes; no backup is called so.
const probeName = "check"

// Where says in a few words where backups are kept.
func (s *Store) Where() string {
	if s.folder != "" {
		return "the folder " + s.folder
	}
	return s.bucket.where()
}

func (b Bucket) where() string {
	text := "the bucket " + b.Name
	if b.Endpoint != "" {
		text += " at " + b.Endpoint
	}
	return text
}

// Probe proves that a backup could be written, found and removed. It leaves nothing behind but where the key may not remove.
func (s *Store) Probe(ctx context.Context) error {
	s.files.SetContext(ctx)
	name := s.under + probeName
	if err := s.files.Upload([]byte("a backup could be written here\n"), name); err != nil {
		return fmt.Errorf("%s cannot be written: %w", s.Where(), s.plain(err))
	}
	if _, err := s.List(ctx); err != nil {
		return err
	}
	_ = s.files.Delete(name) // a key that may not remove is a good one
	return nil
}

// Writable reports whether a folder can take files, or be made; it changes nothing that is there.
func Writable(folder string) error {
	for at := folder; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			continue // it would be made
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

// shut makes what is kept in a folder readable for its owner alone, whatever made it.
func (s *Store) shut() error {
	if s.folder == "" {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(s.folder, prefix+"*"))
	if err != nil {
		return fmt.Errorf("look into the backup folder: %w", err)
	}
	for _, name := range names {
		if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
			continue // it has gone, or nobody else can read it
		}
		if err := os.Chmod(name, 0o600); err != nil {
			return fmt.Errorf("close the backup to others: %w", err)
		}
	}
	return nil
}

// refusals are what S3-compatible services answer, by the code of the standard, in the words of an operator.
var refusals = []struct{ code, said string }{
	{"NoSuchBucket", "there is no such bucket: make it, or correct VIGIL_BACKUP_S3_BUCKET"},
	{"InvalidAccessKeyId", "the bucket's service does not know the access key: see VIGIL_BACKUP_S3_ACCESS_KEY"},
	{"SignatureDoesNotMatch", "the bucket's service does not accept the secret: see VIGIL_BACKUP_S3_SECRET"},
	{"AccessDenied", "the bucket's service does not let this access key do that"},
	{"RequestTimeTooSkewed", "the bucket's service refuses because this machine's clock is wrong"},
	{"PermanentRedirect", "the bucket is elsewhere: see VIGIL_BACKUP_S3_ENDPOINT and VIGIL_BACKUP_S3_REGION"},
	{"AuthorizationHeaderMalformed", "the bucket is in another region: see VIGIL_BACKUP_S3_REGION"},
	{"QuotaExceeded", "the bucket is full"},
}

// placeError says what a place of backups refused; what the service sent is not for reading.
type placeError struct {
	said  string
	cause error
}

func (e *placeError) Error() string { return e.said }
func (e *placeError) Unwrap() error { return e.cause }

// plain says what a bucket refused in a sentence, without its document.
func (s *Store) plain(err error) error {
	if err == nil || s.folder != "" {
		return err
	}
	text := err.Error()
	for _, known := range refusals {
		if strings.Contains(text, known.code) {
			return &placeError{fmt.Sprintf("%s: %s", s.Where(), known.said), err}
		}
	}
	if before, _, raw := strings.Cut(text, "\n"); raw {
		return &placeError{before, err}
	}
	return err
}
