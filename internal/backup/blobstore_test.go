package backup_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/vigilhealth/vigil/internal/backup"
)

// Errors of a bucket's service show its status and code, never its text.
func TestBucketErrorsHideResponseText(t *testing.T) {
	for name, tt := range map[string]struct {
		status     int
		body, want string
	}{
		"known":      {404, "<Error><Code>NoSuchBucket</Code><Message>secret text</Message></Error>", "there is no such bucket"},
		"unknown":    {501, "<Error><Code>NotImplemented</Code><Message>secret text</Message></Error>", "answers 501 NotImplemented"},
		"other code": {400, "<Error><Code>Odd</Code><Message>secret text</Message></Error>", "answers 400 Odd"},
		"no S3":      {200, "<Error><Code>Odd</Code><Message>secret text</Message></Error>", "no S3-compatible service"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
		}))
		at, err := backup.OpenBucket(backup.BucketConfig{Name: "kept", Region: "us-east-1", Endpoint: server.URL, AccessKey: "id", Secret: "s", ForcePathStyle: true})
		if err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{"probe": at.Probe(t.Context(), "check"), "list": last(at.List(t.Context(), ""))} {
			if err == nil || strings.Contains(err.Error(), "secret text") || !strings.Contains(err.Error(), tt.want) || strings.Count(err.Error(), "kept") != 1 {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		_ = at.Close()
		server.Close()
	}
}

func last(_ []backup.Blob, err error) error { return err }

// A server that answers every request with a page of text is rejected, although PocketBase reads that list as empty.
func TestBucketBehindProxyPageIsRejected(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "welcome")
	}))
	defer server.Close()
	at, err := backup.OpenBucket(backup.BucketConfig{Name: "kept", Region: "us-east-1", Endpoint: server.URL, AccessKey: "id", Secret: "s", ForcePathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = at.Close() }()
	if err := at.Probe(t.Context(), "check"); err == nil || !strings.Contains(err.Error(), "does not list it") {
		t.Error(err)
	}
}

// An unreadable folder is an error, not an empty folder.
func TestUnreadableFolderIsAnError(t *testing.T) {
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("root can read every folder")
	}
	dir := filepath.Join(t.TempDir(), "kept")
	at, err := backup.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = at.Close() }()
	if err := os.Chmod(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	if _, err := at.List(t.Context(), ""); !errors.Is(err, os.ErrPermission) {
		t.Errorf("listed: %v", err)
	}
}

// An interrupted write returns one message about the folder and leaves no file.
func TestFullFolderLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	at, err := backup.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = at.Close() }()
	err = at.Write(t.Context(), "one", func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		return &os.PathError{Op: "write", Path: filepath.Join(dir, "one.123.tmp"), Err: syscall.ENOSPC}
	})
	if err == nil || !errors.Is(err, syscall.ENOSPC) || err.Error() != "the folder "+dir+" cannot be written: no space left on device" {
		t.Errorf("error: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
