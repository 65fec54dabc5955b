package auth

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"golang.org/x/crypto/bcrypt"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// hashCost is what PocketBase's password field says.
func hashCost(app core.App) (int, error) {
	users, err := app.FindCachedCollectionByNameOrId(collections.Users)
	if err != nil {
		return 0, fmt.Errorf("find users: %w", err)
	}
	if field, ok := users.Fields.GetByName(core.FieldNamePassword).(*core.PasswordField); ok && field.Cost > 0 {
		return field.Cost, nil
	}
	return bcrypt.DefaultCost, nil
}

// hashPassword makes what is stored of a password. It takes a twentieth of a second and belongs outside of transactions.
func hashPassword(app core.App, password string) (string, error) {
	cost, err := hashCost(app)
	if err != nil {
		return "", err
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), cost)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	return string(hash), nil
}

// places bounds how many passwords are hashed at a time. While others wait, each place also rests after a hash for about as long as one
// takes: however many sign in at once, most of the processors is left to readings. Whoever could not be answered in good time is told at once.
type places struct {
	free    chan struct{}
	waiting atomic.Int32
	most    int32 // of those that wait
	rest    time.Duration
}

const (
	rest = 50 * time.Millisecond
	// queue is how many may wait for each place: those are done in about seven seconds.
	queue = 64
	// inGoodTime is how long an attempt may wait for all of its hashes, which leaves time to decide about it within ten seconds.
	inGoodTime = 8 * time.Second
	comeBack   = 5 * time.Second
)

// waiting bounds the time that one attempt waits for places.
func waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, inGoodTime)
}

// newPlaces are for hashing.
func newPlaces(n int) *places {
	return &places{free: make(chan struct{}, n), most: int32(queue * n), rest: rest} //nolint:gosec // as many as processors
}

// newTurns are for the decisions about attempts, of which one is taken at a time: each is a write, and readings wait for no more than one. There
// are as many as there may be connections, and each takes a millisecond.
func newTurns() *places { return &places{free: make(chan struct{}, 1), most: 4096} }

// take waits for a place and returns what gives it back. It refuses with overloaded when too many wait, or it took too long; who hangs up leaves
// the queue.
func (p *places) take(ctx context.Context) (giveBack func(), err error) {
	defer p.waiting.Add(-1)
	if p.waiting.Add(1) > p.most {
		return nil, fault.Overloaded(comeBack)
	}
	select {
	case p.free <- struct{}{}:
	case <-ctx.Done():
		return nil, gaveUp(ctx)
	}
	if ctx.Err() != nil { // a place came free at the moment of giving up: it is for one who still waits
		<-p.free
		return nil, gaveUp(ctx)
	}
	return func() {
		if p.rest == 0 || p.waiting.Load() == 0 {
			<-p.free
			return
		}
		time.AfterFunc(p.rest, func() { <-p.free })
	}, nil
}

// gaveUp says why an attempt waits no longer.
func gaveUp(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Overloaded(comeBack)
	}
	return fmt.Errorf("wait for a place: %w", ctx.Err())
}

// hash is hashPassword, waiting for a place.
func (e *Engine) hash(ctx context.Context, app core.App, password string) (string, error) {
	giveBack, err := e.places.take(ctx)
	if err != nil {
		return "", err
	}
	defer giveBack()
	return hashPassword(app, password)
}

// matches reports whether the password has the hash, waiting for a place. It reads as much of an overlong password as bcrypt would, so that
// it takes its time for that too.
func (e *Engine) matches(ctx context.Context, hash, password string) (bool, error) {
	giveBack, err := e.places.take(ctx)
	if err != nil {
		return false, err
	}
	defer giveBack()
	read := password[:min(len(password), maxPasswordBytes)]
	return bcrypt.CompareHashAndPassword([]byte(hash), []byte(read)) == nil && len(password) <= maxPasswordBytes, nil
}

// setPassword gives a user a password that was hashed before, and ends every access token. PocketBase does the latter by itself only for
// passwords that it hashes.
func setPassword(user *collections.User, hash string) {
	user.SetRaw(core.FieldNamePassword, &core.PasswordFieldValue{Hash: hash})
	user.RefreshTokenKey()
}

// decoy is salt and digest of a password nobody has.
const decoy = "wYvVQJ1mZ8y0sXc3dP5hUeT7bRk2nLq4aFi6gCj8oEu1xNzMtHpSK"

// decoyHash costs as much to check as a real one.
func decoyHash(app core.App) (string, error) {
	cost, err := hashCost(app)
	return fmt.Sprintf("$2a$%02d$%s", cost, decoy), err
}
