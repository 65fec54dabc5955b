package vigiltest

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
)

// Bucket implements the part of S3 that the service uses: list, get, put in one piece or in parts, delete. It accepts
// requests signed with [BucketKey] only.
type Bucket struct {
	Name string
	URL  string // of the server

	lock       sync.Mutex
	isRefusing bool
	objects    map[string][]byte
	uploads    map[string]map[int][]byte
}

// BucketKey is the access key of a [Bucket].
const BucketKey = "access"

// NewBucket serves until the test ends.
func NewBucket(t testing.TB, name string) *Bucket {
	t.Helper()
	b := &Bucket{Name: name, objects: map[string][]byte{}, uploads: map[string]map[int][]byte{}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.URL = server.URL
	return b
}

// SetRefusing makes the bucket refuse all requests, or accept them again.
func (b *Bucket) SetRefusing(all bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.isRefusing = all
}

// Put stores an object.
func (b *Bucket) Put(key string, content []byte) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.objects[key] = content
}

// Objects returns the stored objects by key.
func (b *Bucket) Objects() map[string][]byte {
	b.lock.Lock()
	defer b.lock.Unlock()
	return maps.Clone(b.objects)
}

// OpenUploads returns the number of multipart uploads that were neither completed nor aborted.
func (b *Bucket) OpenUploads() int {
	b.lock.Lock()
	defer b.lock.Unlock()
	return len(b.uploads)
}

// ServeHTTP implements [http.Handler].
func (b *Bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.lock.Lock()
	defer b.lock.Unlock()
	key, inBucket := strings.CutPrefix(r.URL.Path, "/"+b.Name+"/")
	if b.isRefusing || !inBucket || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="+BucketKey+"/") {
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
		_, _ = fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", key)
	case r.Method == http.MethodPut && upload != "":
		number, _ := strconv.Atoi(query.Get("partNumber"))
		b.uploads[upload][number] = body
		w.Header().Set("ETag", etag(body))
	case r.Method == http.MethodPost && upload != "":
		b.objects[key] = slices.Concat(slices.Collect(sortedParts(b.uploads[upload]))...)
		delete(b.uploads, upload)
		_, _ = fmt.Fprint(w, "<CompleteMultipartUploadResult/>")
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
		http.ServeContent(w, r, "", Clock, strings.NewReader(string(object)))
	}
}

func (b *Bucket) list(w io.Writer, prefix string) {
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
			result.Contents = append(result.Contents, content{key, etag(b.objects[key]), len(b.objects[key]), Clock})
		}
	}
	_ = xml.NewEncoder(w).Encode(result)
}

func sortedParts(parts map[int][]byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for _, number := range slices.Sorted(maps.Keys(parts)) {
			if !yield(parts[number]) {
				return
			}
		}
	}
}

func etag(content []byte) string {
	sum := md5.Sum(content)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}
