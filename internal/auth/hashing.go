package auth

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"golang.org/x/crypto/bcrypt"

	"github.com/vigilhealth/vigil/collections"
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
// takes: however many sign in at once, most of the processors is left to readings.
type places struct {
	free    chan struct{}
	waiting atomic.Int32
}

const rest = 50 * time.Millisecond

func newPlaces(n int) *places { return &places{free: make(chan struct{}, n)} }

// take waits for a place and returns what gives it back.
func (p *places) take() (giveBack func()) {
	p.waiting.Add(1)
	p.free <- struct{}{}
	p.waiting.Add(-1)
	return func() {
		if p.waiting.Load() == 0 {
			<-p.free
			return
		}
		time.AfterFunc(rest, func() { <-p.free })
	}
}

// hash is hashPassword, waiting for a place.
func (e *Engine) hash(app core.App, password string) (string, error) {
	defer e.places.take()()
	return hashPassword(app, password)
}

// matches reports whether the password has the hash, waiting for a place. It reads as much of an overlong password as bcrypt would, so that
// it takes its time for that too.
func (e *Engine) matches(hash, password string) bool {
	defer e.places.take()()
	read := password[:min(len(password), maxPasswordBytes)]
	return bcrypt.CompareHashAndPassword([]byte(hash), []byte(read)) == nil && len(password) <= maxPasswordBytes
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
