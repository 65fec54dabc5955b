package auth

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
)

// Internals that tests use.
var (
	MatchTOTP    = matchTOTP
	IsLocked     = isLocked
	ExtendLock   = extendLock
	CountFailure = countFailure
	DecoyHash    = decoyHash
)

// HashLimiter is the limiter for password hashes.
type HashLimiter = workLimiter

// Queue limits.
const (
	QueuePerSlot = queuePerSlot
	QueueTimeout = queueTimeout
)

// NewHashLimiter returns a limiter for n concurrent hashes.
func NewHashLimiter(n int) *HashLimiter { return newHashLimiter(n) }

// Acquire waits for a slot with the timeout of an attempt.
func (wl *workLimiter) Acquire(ctx context.Context) (release func(), err error) {
	ctx, done := withQueueTimeout(ctx)
	defer done()
	return wl.acquire(ctx)
}

// Waiting returns the number of waiting callers.
func (wl *workLimiter) Waiting() int { return int(wl.waiting.Load()) }

// HoldHashSlots takes every hash slot until release is called.
func (e *Engine) HoldHashSlots() (release func()) {
	for range cap(e.hashLimiter.slots) {
		e.hashLimiter.slots <- struct{}{}
	}
	return func() {
		for range cap(e.hashLimiter.slots) {
			<-e.hashLimiter.slots
		}
	}
}

// WithoutHashPause removes the pause after a hash, so that concurrent attempts do not time out.
func (e *Engine) WithoutHashPause() *Engine { e.hashLimiter.pause = 0; return e }

// HashAt sets the bcrypt cost of passwords.
func HashAt(users *core.Collection, cost int) {
	users.Fields.GetByName(core.FieldNamePassword).(*core.PasswordField).Cost = cost
}

// LoginWhile is Login with a call between the password check and the decision.
func (e *Engine) LoginWhile(ctx context.Context, app core.App, body LoginBody, from audit.Origin, now time.Time, between func()) error {
	a, err := e.readLogin(app, body, from, now)
	if err != nil {
		return err
	}
	proven, err := e.checkPassword(ctx, app, a)
	if err != nil {
		return err
	}
	between()
	_, err = commitDecision(app, func(tx core.App) (Session, error, error) { return e.decideLogin(tx, a, proven) })
	return err
}
