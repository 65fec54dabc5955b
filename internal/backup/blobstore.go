package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pocketbase/pocketbase/tools/filesystem"
)

// BlobStore stores files in a folder or in a prefix of an S3-compatible bucket, through PocketBase's file system. It is not safe for concurrent use.
type BlobStore struct {
	files  *filesystem.System
	prefix string // prefix of every key, "" for none
	folder string // "" for a bucket
	bucket BucketConfig
}

// BucketConfig configures an S3-compatible bucket.
type BucketConfig struct {
	Name, Region, Endpoint string
	AccessKey, Secret      string
	ForcePathStyle         bool
	// Prefix is the practice's part of the bucket, such as "elm-street/"; "" is the whole bucket.
	Prefix string
}

// Blob describes a stored file.
type Blob struct {
	Name string
	Size int64 // bytes
}

// OpenFolder returns a store in a folder, which it creates if it is missing.
func OpenFolder(path string) (*BlobStore, error) {
	if err := os.MkdirAll(path, 0o700); err != nil { // PocketBase would create it readable for every user of the machine
		return nil, fmt.Errorf("open folder: %w", err)
	}
	files, err := filesystem.NewLocal(path)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return &BlobStore{files: files, folder: path}, nil
}

// OpenBucket returns a store in a bucket.
func OpenBucket(b BucketConfig) (*BlobStore, error) {
	files, err := filesystem.NewS3(b.Name, b.Region, b.Endpoint, b.AccessKey, b.Secret, b.ForcePathStyle)
	if err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	under := strings.Trim(b.Prefix, "/")
	if under != "" {
		under += "/"
	}
	return &BlobStore{files: files, prefix: under, bucket: b}, nil
}

// Close releases the store.
func (s *BlobStore) Close() error { return s.files.Close() }

// List returns every file with the name prefix, including partial files in a folder.
func (s *BlobStore) List(ctx context.Context, prefix string) ([]Blob, error) {
	if err := s.checkReadable(); err != nil {
		return nil, err
	}
	s.files.SetContext(ctx)
	objects, err := s.files.List(s.prefix + prefix)
	if err != nil {
		return nil, s.Explain(err)
	}
	files := make([]Blob, len(objects))
	for i, object := range objects {
		files[i] = Blob{Name: strings.TrimPrefix(object.Key, s.prefix), Size: object.Size}
	}
	return files, nil
}

// checkReadable fails if the folder cannot be read: List would otherwise report it as empty.
func (s *BlobStore) checkReadable() error {
	if s.folder == "" {
		return nil
	}
	folder, err := os.Open(s.folder)
	if err == nil {
		return folder.Close()
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return fmt.Errorf("%s cannot be read: %w", s.Where(), err)
}

// Write streams a file into the store. The file gets its name when it is complete; if write fails, nothing remains.
func (s *BlobStore) Write(ctx context.Context, name string, write func(io.Writer) error) error {
	ctx, abandon := context.WithCancel(ctx)
	defer abandon()
	s.files.SetContext(ctx)
	w, err := s.files.NewWriter(s.prefix+name, nil)
	if err != nil {
		return s.Explain(err)
	}
	if err := write(w); err != nil {
		abandon()
		_ = w.Close() // returns that it was canceled
		return s.writeError(err)
	}
	if err := w.Close(); err != nil {
		return s.writeError(err)
	}
	return nil
}

// writeError explains why the store refused a file; other errors of the write are returned unchanged.
func (s *BlobStore) writeError(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok && s.folder != "" && strings.HasPrefix(path.Path, filepath.Clean(s.folder)) {
		return fmt.Errorf("%s cannot be written: %w", s.Where(), path.Err) // the path is that of a temporary file
	}
	return s.Explain(err)
}

// Read opens a file; the error is fs.ErrNotExist if the file does not exist.
func (s *BlobStore) Read(ctx context.Context, name string) (io.ReadCloser, error) {
	s.files.SetContext(ctx)
	file, err := s.files.GetReader(s.prefix + name)
	if errors.Is(err, filesystem.ErrNotFound) {
		return nil, os.ErrNotExist
	}
	if err != nil {
		return nil, s.Explain(err)
	}
	return file, nil
}

// Remove removes a file, which may be missing.
func (s *BlobStore) Remove(ctx context.Context, name string) error {
	s.files.SetContext(ctx)
	if err := s.files.Delete(s.prefix + name); err != nil && !errors.Is(err, filesystem.ErrNotFound) {
		return s.Explain(err)
	}
	return nil
}

// Where names the folder or bucket for messages.
func (s *BlobStore) Where() string {
	if s.folder != "" {
		return "the folder " + s.folder
	}
	text := "the bucket " + s.bucket.Name
	if s.bucket.Endpoint != "" {
		text += " at " + s.bucket.Endpoint
	}
	return text
}

// Probe checks that a file can be written and listed. It removes the file if the access key may remove files.
func (s *BlobStore) Probe(ctx context.Context, name string) error {
	s.files.SetContext(ctx)
	if err := s.files.Upload([]byte("a file could be written here\n"), s.prefix+name); err != nil {
		return s.writeError(err)
	}
	files, err := s.List(ctx, name)
	if err != nil {
		return err
	}
	if len(files) == 0 { // PocketBase reads a response without a document, such as a proxy's, as the end of the list
		return &blobError{s.Where() + ": it accepted a file and does not list it: check whether a proxy answers instead of the service", nil}
	}
	_ = s.files.Delete(s.prefix + name) // a key that cannot remove files is acceptable
	return nil
}

// MakePrivate makes the matching files of a folder readable for their owner only, including files that other programs created.
func (s *BlobStore) MakePrivate(pattern string) error {
	if s.folder == "" {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(s.folder, pattern))
	if err != nil {
		return fmt.Errorf("read the folder: %w", err)
	}
	for _, name := range names {
		if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
			continue // removed since, or already private
		}
		if err := os.Chmod(name, 0o600); err != nil {
			return fmt.Errorf("make a file private: %w", err)
		}
	}
	return nil
}

// refusals explain the error codes of S3-compatible services to an operator.
var refusals = []struct{ code, message string }{
	{"NoSuchBucket", "there is no such bucket: create it, or correct VIGIL_BACKUP_S3_BUCKET"},
	{"InvalidAccessKeyId", "the bucket's service rejects the access key: correct VIGIL_BACKUP_S3_ACCESS_KEY"},
	{"SignatureDoesNotMatch", "the bucket's service rejects the secret: correct VIGIL_BACKUP_S3_SECRET"},
	{"AccessDenied", "the bucket's service does not permit this with the access key: extend its permissions"},
	{"RequestTimeTooSkewed", "the bucket's service rejects the request because this machine's clock is wrong: correct it"},
	{"PermanentRedirect", "the bucket is elsewhere: see VIGIL_BACKUP_S3_ENDPOINT and VIGIL_BACKUP_S3_REGION"},
	{"AuthorizationHeaderMalformed", "the bucket is in another region: see VIGIL_BACKUP_S3_REGION"},
	{"QuotaExceeded", "the bucket is full"},
}

// statusAndCode matches the status and error code of a service's response, which contain no free text.
var statusAndCode = regexp.MustCompile(`\b[345][0-9]{2} [A-Za-z]{1,64}\b`)

// blobError explains a refusal without the text of the service's response.
type blobError struct {
	message string
	cause   error
}

func (e *blobError) Error() string { return e.message }
func (e *blobError) Unwrap() error { return e.cause }

// Explain explains a bucket's error in one sentence, without the response body.
func (s *BlobStore) Explain(err error) error {
	if explained, ok := errors.AsType[*blobError](err); err == nil || s.folder != "" || ok && explained.cause != nil {
		return err
	}
	text := err.Error()
	for _, known := range refusals {
		if strings.Contains(text, known.code) {
			return &blobError{fmt.Sprintf("%s: %s", s.Where(), known.message), err}
		}
	}
	if number := statusAndCode.FindString(text); number != "" {
		return &blobError{fmt.Sprintf("%s: the bucket's service answers %s", s.Where(), number), err}
	}
	if strings.HasPrefix(text, "expected element type") {
		return &blobError{s.Where() + ": this is no S3-compatible service: correct VIGIL_BACKUP_S3_ENDPOINT", err}
	}
	if before, _, raw := strings.Cut(text, "\n"); raw {
		text = before
	}
	return &blobError{s.Where() + ": " + text, err}
}
