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

// Bucket is as much of S3 as the service asks for: list, get, put in one piece or in parts, delete. It takes signed requests of [BucketKey] only.
type Bucket struct {
	Name string
	URL  string // of the server that has it

	lock    sync.Mutex
	refuse  bool
	objects map[string][]byte
	uploads map[string]map[int][]byte
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

// Refuse has everything refused from now on, or nothing any more.
func (b *Bucket) Refuse(all bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.refuse = all
}

// Put puts something there.
func (b *Bucket) Put(key string, content []byte) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.objects[key] = content
}

// Objects is what is there, by key.
func (b *Bucket) Objects() map[string][]byte {
	b.lock.Lock()
	defer b.lock.Unlock()
	return maps.Clone(b.objects)
}

// Unfinished is how many uploads in parts were neither ended nor called off.
func (b *Bucket) Unfinished() int {
	b.lock.Lock()
	defer b.lock.Unlock()
	return len(b.uploads)
}

// ServeHTTP implements [http.Handler].
func (b *Bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.lock.Lock()
	defer b.lock.Unlock()
	key, inBucket := strings.CutPrefix(r.URL.Path, "/"+b.Name+"/")
	if b.refuse || !inBucket || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="+BucketKey+"/") {
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
		b.objects[key] = slices.Concat(slices.Collect(inOrder(b.uploads[upload]))...)
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
	sum := md5.Sum(content)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}
