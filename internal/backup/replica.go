package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"
)

// replicaSocket is Litestream's control socket in the data folder, by deploy/litestream.yml.
const replicaSocket = ".litestream.sock"

// Replica reads from Litestream when the database was last uploaded.
type Replica struct {
	dir    string
	client *http.Client
	mu     sync.Mutex
	last   time.Time
}

// NewReplica returns the replica of a data folder. Until Litestream reports an upload, its age counts from start.
func NewReplica(dir string, start time.Time) *Replica {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, replicaSocket))
	}
	return &Replica{dir: dir, last: start, client: &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Age returns the time since the last upload that is known. configured is false without a replica: Litestream's state is not in the data folder. The
// error is why Litestream did not report; then the age grows from the last report.
func (r *Replica) Age(ctx context.Context, now time.Time) (age time.Duration, configured bool, err error) {
	if !exists(filepath.Join(r.dir, "."+databaseFile+"-litestream")) && !exists(filepath.Join(r.dir, replicaSocket)) {
		return 0, false, nil
	}
	uploaded, err := r.uploadedAt(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if uploaded.After(r.last) {
		r.last = uploaded
	}
	return max(0, now.Sub(r.last)), true, err
}

// uploadedAt returns when Litestream last uploaded everything, or zero for not since its start.
func (r *Replica) uploadedAt(ctx context.Context) (time.Time, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://litestream/list", nil)
	if err != nil {
		return time.Time{}, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return time.Time{}, fmt.Errorf("litestream does not answer: %w", errors.Unwrap(err))
	}
	defer func() { _ = response.Body.Close() }() // read only
	var list struct {
		Databases []struct {
			LastSyncAt time.Time `json:"last_sync_at"`
		} `json:"databases"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, response.Body, 1<<16)).Decode(&list); err != nil || len(list.Databases) != 1 {
		return time.Time{}, errors.New("litestream does not list one database")
	}
	return list.Databases[0].LastSyncAt, nil
}
