package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/hook"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
)

// Lease permits this process to write. Source: docs/lease.md.
type Lease interface {
	// MayWrite reports whether the process may write now.
	MayWrite() bool
	// LastHeld returns how long ago the permission ended; 0 if it did not.
	LastHeld() time.Duration
}

// StaleHeader marks answers of a process that may not write: another one may have newer data.
const StaleHeader = "X-Vigil-Stale"

// maxStaleness is how long a process serves reads after it could last write.
const maxStaleness = 10 * time.Minute

// notLeader refuses a request because another process may write this practice's database.
func notLeader() *fault.Error {
	return fault.New(fault.Unavailable, "not_leader", "This server may not write at the moment. Try again.").After(5 * time.Second)
}

// admitByLease refuses writes without the lease, and reads some time after it was lost. Health checks always pass.
func (s *Server) admitByLease(c *Call, row Route) error {
	if s.Lease == nil || row.Limit == ratelimit.None {
		return nil
	}
	if row.Method != http.MethodGet && !row.ReadOnly {
		c.lease = s.Lease
	}
	switch {
	case s.Lease.MayWrite():
		return nil
	case c.lease != nil || s.Lease.LastHeld() > maxStaleness:
		return notLeader()
	}
	c.staleReads = s.StaleReads
	c.Header().Set(StaleHeader, "true")
	return nil
}

// stillHeld tests the lease again after a write: the process may have been paused since, and another may have begun to write.
func (c *Call) stillHeld() error {
	if c.lease == nil || c.lease.MayWrite() {
		return nil
	}
	return notLeader()
}

// appendRead records a read in the audit trail, or beside it while the database accepts no writes.
func (c *Call) appendRead(entry audit.Entry) error {
	if c.staleReads != nil {
		return c.staleReads.Append(entry, c.Now)
	}
	return c.reads.Append(c.outerApp(), entry, c.Now)
}

// refuseNativeWrites refuses writes through PocketBase's own routes without the lease.
func (s *Server) refuseNativeWrites() *hook.Handler[*core.RequestEvent] {
	return &hook.Handler[*core.RequestEvent]{Id: "vigilLease", Func: func(e *core.RequestEvent) error {
		path, method := e.Request.URL.Path, e.Request.Method
		isRead := method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
		if s.Lease == nil || isRead || !strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, BasePath+"/") || s.Lease.MayWrite() {
			return e.Next()
		}
		e.Response.Header().Set("Content-Type", JSONType)
		e.Response.WriteHeader(http.StatusServiceUnavailable)
		_, err := e.Response.Write(errorBody(notLeader()))
		return err
	}}
}
