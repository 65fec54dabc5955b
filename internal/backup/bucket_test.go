package backup_test

import (
	"crypto/md5" // what S3 calls an ETag
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A bucket does all that a folder does, in a part of it that is the practice's own.
func TestBackupsInBucket(t *testing.T) {
	app := vigiltest.NewApp(t)
	kept := &bucket{objects: map[string][]byte{"other/vigil-20260101T000000Z.tar.gz.age": []byte("somebody else's")}, uploads: map[string]map[int][]byte{}}
	server := httptest.NewServer(kept)
	defer server.Close()
	store, err := backup.OpenBucket(backup.Bucket{
		Name: "backups", Region: "us-east-1", Endpoint: server.URL, AccessKey: "access", Secret: "secret", ForcePathStyle: true, Prefix: "elm-street",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	keys := backup.Keys{Ring: ring(t, "first")}
	note(t, app, 2)
	for day := range 3 {
		create(t, app, store, keys, vigiltest.Clock.AddDate(0, 0, day))
	}
	if removed, err := store.Keep(t.Context(), 2, []string{"vigil-20260117T134500Z.tar.gz.age"}); err != nil || removed != 1 {
		t.Errorf("removed %d: %v", removed, err)
	}
	want := []string{"elm-street/vigil-20260116T134500Z.tar.gz.age", "elm-street/vigil-20260117T134500Z.tar.gz.age", "other/vigil-20260101T000000Z.tar.gz.age"}
	if names := slices.Sorted(maps.Keys(kept.objects)); !slices.Equal(names, want) || len(kept.uploads) > 0 {
		t.Errorf("in the bucket: %v, unfinished %d", names, len(kept.uploads))
	}
	newest, err := store.Find(t.Context(), "latest")
	if err != nil || newest.Name != "vigil-20260117T134500Z.tar.gz.age" || newest.Size != int64(len(kept.objects[want[1]])) {
		t.Fatalf("newest %+v: %v", newest, err)
	}
	if m, err := backup.Verify(t.Context(), store, keys, newest.Name, t.TempDir(), open); err != nil || m.Counts.AuditEntries != 2 {
		t.Errorf("verified %+v: %v", m, err)
	}
	if err := store.Probe(t.Context()); err != nil || kept.objects["elm-street/check"] != nil {
		t.Errorf("the probe: %v", err)
	}
	kept.refuse = true
	if err := store.Probe(t.Context()); err == nil || strings.Contains(err.Error(), "<") || !strings.Contains(err.Error(), "does not let this access key") {
		t.Errorf("the probe of a bucket that refuses: %v", err)
	}
	if _, _, err := backup.Create(t.Context(), app, store, keys, "test", vigiltest.Clock.AddDate(1, 0, 0)); err == nil {
		t.Error("taken although the bucket refuses")
	}
}

// bucket is as much of S3 as a store of backups asks for: list, get, put in one piece or in parts, delete. It holds signed requests only.
type bucket struct {
	refuse  bool
	lock    sync.Mutex
	objects map[string][]byte
	uploads map[string]map[int][]byte
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.lock.Lock()
	defer b.lock.Unlock()
	key, inBucket := strings.CutPrefix(r.URL.Path, "/backups/")
	if b.refuse || !inBucket || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=access/") {
		http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "", http.StatusBadRequest)
		return
	}
	query := r.URL.Query()
	upload := query.Get("uploadId")
	switch {
	case r.Method == http.MethodGet && key == "":
		b.list(w, query.Get("prefix"))
	case r.Method == http.MethodPost && query.Has("uploads"):
		b.uploads[key] = map[int][]byte{}
		fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", key)
	case r.Method == http.MethodPut && upload != "":
		number, _ := strconv.Atoi(query.Get("partNumber"))
		b.uploads[upload][number] = body
		w.Header().Set("ETag", etag(body))
	case r.Method == http.MethodPost && upload != "":
		b.objects[key] = slices.Concat(slices.Collect(inOrder(b.uploads[upload]))...)
		delete(b.uploads, upload)
		fmt.Fprint(w, "<CompleteMultipartUploadResult/>")
	case r.Method == http.MethodDelete && upload != "":
		delete(b.uploads, upload)
	case r.Method == http.MethodPut:
		b.objects[key] = body
		w.Header().Set("ETag", etag(body))
	case r.Method == http.MethodDelete:
		delete(b.objects, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		object, there := b.objects[key]
		if !there {
			http.Error(w, "<Error><Code>NoSuchKey</Code></Error>", http.StatusNotFound)
			return
		}
		w.Header().Set("ETag", etag(object))
		http.ServeContent(w, r, "", vigiltest.Clock, strings.NewReader(string(object)))
	}
}

func (b *bucket) list(w io.Writer, prefix string) {
	type content struct {
		Key, ETag    string
		Size         int
		LastModified time.Time
	}
	var result struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []content
	}
	for _, key := range slices.Sorted(maps.Keys(b.objects)) {
		if strings.HasPrefix(key, prefix) {
			result.Contents = append(result.Contents, content{key, etag(b.objects[key]), len(b.objects[key]), vigiltest.Clock})
		}
	}
	_ = xml.NewEncoder(w).Encode(result)
}

func inOrder(parts map[int][]byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for _, number := range slices.Sorted(maps.Keys(parts)) {
			if !yield(parts[number]) {
				return
			}
		}
	}
}

func etag(content []byte) string {
	sum := md5.Sum(content) // what S3 calls an ETag
	return `"` + hex.EncodeToString(sum[:]) + `"`
}
