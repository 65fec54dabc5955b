package auth

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
)

// What tests of the rules need to reach.
var (
	MatchTOTP   = matchTOTP
	Locked      = locked
	Relocked    = relocked
	FailedAgain = failedAgain
	DecoyHash   = decoyHash

	CommonPasswords = commonPasswords
)

// Places bounds how many hash passwords at a time.
type Places = places

// How many may wait for a place, and for how long.
const (
	Queue      = queue
	InGoodTime = inGoodTime
)

// NewPlaces makes n places.
func NewPlaces(n int) *Places { return newPlaces(n) }

// Take waits for a place, as an attempt does that takes no other.
func (p *places) Take(ctx context.Context) (giveBack func(), err error) {
	ctx, done := waiting(ctx)
	defer done()
	return p.take(ctx)
}

// Waiting is how many wait.
func (p *places) Waiting() int { return int(p.waiting.Load()) }

// HoldPlaces takes every place of the engine until they are given back.
func (e *Engine) HoldPlaces() (giveBack func()) {
	for range cap(e.places.free) {
		e.places.free <- struct{}{}
	}
	return func() {
		for range cap(e.places.free) {
			<-e.places.free
		}
	}
}

// WithoutRest has places that do not rest: of many attempts at once none is turned away for want of time.
func (e *Engine) WithoutRest() *Engine { e.places.rest = 0; return e }

// HashAt sets the cost of hashing passwords.
func HashAt(users *core.Collection, cost int) {
	users.Fields.GetByName(core.FieldNamePassword).(*core.PasswordField).Cost = cost
}

// LoginWhile is Login with something happening between the check of the password and the decision.
func (e *Engine) LoginWhile(ctx context.Context, app core.App, body LoginBody, from audit.Origin, now time.Time, meanwhile func()) error {
	a, err := e.readLogin(app, body, from, now)
	if err != nil {
		return err
	}
	proven, err := e.checkPassword(ctx, app, a)
	if err != nil {
		return err
	}
	meanwhile()
	_, err = commitDecision(app, func(tx core.App) (Session, error, error) { return e.decideLogin(tx, a, proven) })
	return err
}
