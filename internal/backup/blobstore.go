// Package place knows how files are kept where the operator wants them: in a folder, or in an S3-compatible bucket. Both are PocketBase's own file
// system. It says in an operator's words what a bucket refuses, and refuses to know what the files are.
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

// BlobStore is a folder, or one practice's part of a bucket. It is for one user at a time.
type BlobStore struct {
	files  *filesystem.System
	under  string // what stands before every name
	folder string // "" for a bucket
	bucket BucketConfig
}

// BucketConfig is an S3-compatible place.
type BucketConfig struct {
	Name, Region, Endpoint string
	AccessKey, Secret      string
	ForcePathStyle         bool
	// Prefix is the practice's part of the bucket, such as "elm-street/"; "" is the whole.
	Prefix string
}

// Blob is one that is kept.
type Blob struct {
	Name string
	Size int64 // bytes
}

// OpenFolder keeps files in a folder, which is made when it is missing.
func OpenFolder(path string) (*BlobStore, error) {
	if err := os.MkdirAll(path, 0o700); err != nil { // PocketBase would let everybody on the machine look inside
		return nil, fmt.Errorf("open folder: %w", err)
	}
	files, err := filesystem.NewLocal(path)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return &BlobStore{files: files, folder: path}, nil
}

// OpenBucket keeps files in a bucket.
func OpenBucket(b BucketConfig) (*BlobStore, error) {
	files, err := filesystem.NewS3(b.Name, b.Region, b.Endpoint, b.AccessKey, b.Secret, b.ForcePathStyle)
	if err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	under := strings.Trim(b.Prefix, "/")
	if under != "" {
		under += "/"
	}
	return &BlobStore{files: files, under: under, bucket: b}, nil
}

// Close lets go of the place.
func (p *BlobStore) Close() error { return p.files.Close() }

// List is every file whose name begins so, what is half written to a folder too.
func (p *BlobStore) List(ctx context.Context, prefix string) ([]Blob, error) {
	if err := p.readable(); err != nil {
		return nil, err
	}
	p.files.SetContext(ctx)
	objects, err := p.files.List(p.under + prefix)
	if err != nil {
		return nil, p.Plain(err)
	}
	files := make([]Blob, len(objects))
	for i, object := range objects {
		files[i] = Blob{Name: strings.TrimPrefix(object.Key, p.under), Size: object.Size}
	}
	return files, nil
}

// readable fails for a folder that may not be looked into: its files would otherwise seem not to be there.
func (p *BlobStore) readable() error {
	if p.folder == "" {
		return nil
	}
	folder, err := os.Open(p.folder)
	if err == nil {
		return folder.Close()
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return fmt.Errorf("%s cannot be read: %w", p.Where(), err)
}

// Write streams a file into the place. It gets its name when it is whole; when write fails nothing is left.
func (p *BlobStore) Write(ctx context.Context, name string, write func(io.Writer) error) error {
	ctx, abandon := context.WithCancel(ctx)
	defer abandon()
	p.files.SetContext(ctx)
	w, err := p.files.NewWriter(p.under+name, nil)
	if err != nil {
		return p.Plain(err)
	}
	if err := write(w); err != nil {
		abandon()
		_ = w.Close() // it says that it was abandoned
		return p.unwritten(err)
	}
	if err := w.Close(); err != nil {
		return p.unwritten(err)
	}
	return nil
}

// unwritten says why the place did not take a file. What else kept it from being written is told as it is.
func (p *BlobStore) unwritten(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok && p.folder != "" && strings.HasPrefix(path.Path, filepath.Clean(p.folder)) {
		return fmt.Errorf("%s cannot be written: %w", p.Where(), path.Err) // the file is one that nobody has heard of
	}
	return p.Plain(err)
}

// Read opens a file. Of one that is not there the error is fs.ErrNotExist.
func (p *BlobStore) Read(ctx context.Context, name string) (io.ReadCloser, error) {
	p.files.SetContext(ctx)
	file, err := p.files.GetReader(p.under + name)
	if errors.Is(err, filesystem.ErrNotFound) {
		return nil, os.ErrNotExist
	}
	if err != nil {
		return nil, p.Plain(err)
	}
	return file, nil
}

// Remove removes a file. That it is not there is no error.
func (p *BlobStore) Remove(ctx context.Context, name string) error {
	p.files.SetContext(ctx)
	if err := p.files.Delete(p.under + name); err != nil && !errors.Is(err, filesystem.ErrNotFound) {
		return p.Plain(err)
	}
	return nil
}

// Where says in a few words where the files are kept.
func (p *BlobStore) Where() string {
	if p.folder != "" {
		return "the folder " + p.folder
	}
	text := "the bucket " + p.bucket.Name
	if p.bucket.Endpoint != "" {
		text += " at " + p.bucket.Endpoint
	}
	return text
}

// Probe proves that a file could be written and removed. It leaves nothing behind but where the key may not remove.
func (p *BlobStore) Probe(ctx context.Context, name string) error {
	p.files.SetContext(ctx)
	if err := p.files.Upload([]byte("a file could be written here\n"), p.under+name); err != nil {
		return p.unwritten(err)
	}
	files, err := p.List(ctx, name)
	if err != nil {
		return err
	}
	if len(files) == 0 { // PocketBase takes an answer without a document, as a proxy gives, for the end of the list
		return &placeError{p.Where() + ": it took a file and does not list it: see whether something stands between, such as a proxy", nil}
	}
	_ = p.files.Delete(p.under + name) // a key that may not remove is a good one
	return nil
}

// Shut makes the files of a folder whose names match readable for their owner alone, whatever made them.
func (p *BlobStore) Shut(pattern string) error {
	if p.folder == "" {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(p.folder, pattern))
	if err != nil {
		return fmt.Errorf("look into the folder: %w", err)
	}
	for _, name := range names {
		if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
			continue // it has gone, or nobody else can read it
		}
		if err := os.Chmod(name, 0o600); err != nil {
			return fmt.Errorf("close a file to others: %w", err)
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

// answerNumber is how an answer of a bucket's service begins: its status and the code, which are no words of anybody's.
var answerNumber = regexp.MustCompile(`\b[345][0-9]{2} [A-Za-z]{1,64}\b`)

// placeError says what a place refused; what the service sent is not for reading.
type placeError struct {
	said  string
	cause error
}

func (e *placeError) Error() string { return e.said }
func (e *placeError) Unwrap() error { return e.cause }

// Plain says what a bucket refused in a sentence, without its document.
func (p *BlobStore) Plain(err error) error {
	if said, ok := errors.AsType[*placeError](err); err == nil || p.folder != "" || ok && said.cause != nil {
		return err
	}
	text := err.Error()
	for _, known := range refusals {
		if strings.Contains(text, known.code) {
			return &placeError{fmt.Sprintf("%s: %s", p.Where(), known.said), err}
		}
	}
	if number := answerNumber.FindString(text); number != "" {
		return &placeError{fmt.Sprintf("%s: the bucket's service answers %s", p.Where(), number), err}
	}
	if strings.HasPrefix(text, "expected element type") {
		return &placeError{p.Where() + ": what answers there is no S3-compatible service: see VIGIL_BACKUP_S3_ENDPOINT", err}
	}
	if before, _, raw := strings.Cut(text, "\n"); raw {
		text = before
	}
	return &placeError{p.Where() + ": " + text, err}
}
