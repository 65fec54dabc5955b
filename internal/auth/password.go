package auth

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pocketbase/pocketbase/core"
	"golang.org/x/crypto/bcrypt"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Lengths of passwords. What bcrypt would not read is refused, never cut: a longer password would match by its beginning alone.
const (
	minPasswordCharacters = 12
	maxPasswordBytes      = 71
)

// product is a word that a password may not come down to, like the names of its owner.
const product = "vigil"

//go:embed common_passwords.txt
var commonPasswordList string

var commonPasswords = sync.OnceValue(func() map[string]bool {
	common := map[string]bool{}
	for line := range strings.Lines(commonPasswordList) {
		if word := strings.TrimSpace(line); word != "" && !strings.HasPrefix(line, "# ") {
			common[strings.ToLower(word)] = true
		}
	}
	return common
})

// Owner is whose password it is to be: what others know of them is no secret.
type Owner struct{ Email, FirstName, LastName string }

// PasswordProblems says which rules of the password policy a password breaks, one message each.
// Source: docs/decisions/authentication.md, "Password policy errors".
func PasswordProblems(password string, owner Owner) (broken []string) {
	rules := []struct {
		met     bool
		message string
	}{
		{utf8.RuneCountInString(password) >= minPasswordCharacters, "Must have at least 12 characters."},
		{len(password) <= maxPasswordBytes, "Must have no more than 71 bytes in UTF-8."},
		{strings.ContainsFunc(password, unicode.IsUpper), "Must have an upper-case letter."},
		{strings.ContainsFunc(password, unicode.IsLower), "Must have a lower-case letter."},
		{strings.ContainsFunc(password, unicode.IsDigit), "Must have a digit."},
		{strings.ContainsFunc(password, special), "Must have a special character."},
		{!commonPasswords()[strings.ToLower(password)], "Is one of the most common passwords."},
		{owner.Email == "" || !strings.Contains(strings.ToLower(password), FoldEmail(owner.Email)), "Must not contain your e-mail address."},
		{!owner.knownBy(password), "Must not be your name, your e-mail address or the name of this service with digits and signs added."},
	}
	for _, rule := range rules {
		if !rule.met {
			broken = append(broken, rule.message)
		}
	}
	return broken
}

func special(r rune) bool {
	return unicode.IsPrint(r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != ' '
}

// knownBy reports whether the letters of a password are a word that everybody can guess.
func (o Owner) knownBy(password string) bool {
	letters := lettersOf(password)
	local, _, _ := strings.Cut(o.Email, "@")
	words := []string{product, local, o.FirstName, o.LastName, o.FirstName + o.LastName, o.LastName + o.FirstName}
	return letters != "" && slices.ContainsFunc(words, func(word string) bool { return lettersOf(word) == letters })
}

// lettersOf leaves out digits, signs, spaces and case.
func lettersOf(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// PasswordBody changes the caller's password.
type PasswordBody struct {
	OldPassword        validate.String `json:"old_password"`
	NewPassword        validate.String `json:"new_password"`
	NewPasswordConfirm validate.String `json:"new_password_confirm"`
}

const becausePassword = "password_change"

// ChangePassword sets a new password for the caller. Every token ends, the caller's own too.
// Source: docs/decisions/authentication.md, "Password policy errors" and "Effects of a password change".
func (e *Engine) ChangePassword(ctx context.Context, app core.App, caller Caller, body PasswordBody, from audit.Origin, now time.Time) error {
	ctx, done := waiting(ctx)
	defer done()
	checks := validate.NewChecks()
	old := checks.Secret("old_password", body.OldPassword, 0)
	password := readNewPassword(checks, body.NewPassword, body.NewPasswordConfirm)
	if len(checks.Fields["old_password"]) > 0 {
		return checks.Err()
	}
	user, err := e.provePassword(ctx, app, caller, "old_password", old, now)
	if err != nil {
		return err
	}
	hash, err := e.hashNewPassword(ctx, app, checks, password, user)
	if err != nil {
		return err
	}
	proven := user.TokenKey()
	return e.change(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		if user.TokenKey() != proven { // changed meanwhile: the proof was of the password before
			return tokenInvalid(), nil
		}
		return nil, replacePassword(tx, user, hash, becausePassword, about(user, audit.PasswordChange, caller.Actor(from)), now)
	})
}

// readNewPassword reads a password that is sent twice; "" after a complaint.
func readNewPassword(checks *validate.Checks, password, confirm validate.String) string {
	wanted := checks.Secret("new_password", password, 0)
	repeated := checks.Secret("new_password_confirm", confirm, 0)
	if wanted != "" && repeated != "" && wanted != repeated {
		checks.Reject("new_password_confirm", "The two passwords differ.")
	}
	return wanted
}

// hashNewPassword holds the policy for a user's next password and returns its hash, or all complaints so far.
func (e *Engine) hashNewPassword(ctx context.Context, app core.App, checks *validate.Checks, password string, user *collections.User) (string, error) {
	if password != "" {
		for _, broken := range PasswordProblems(password, Owner{user.Email(), user.FirstName(), user.LastName()}) {
			checks.Reject("new_password", broken)
		}
	}
	if err := checks.Err(); err != nil { // also what leaves no password to look at
		return "", err
	}
	same, err := e.matches(ctx, user.PasswordHash(), password)
	if err != nil {
		return "", err
	}
	if same {
		return "", fault.Field("new_password", "Must differ from the old password.")
	}
	return e.hash(ctx, app, password)
}

// replacePassword stores a new password, ends every session and says so by mail.
func replacePassword(tx core.App, user *collections.User, hash, because string, entry audit.Entry, now time.Time) error {
	setPassword(user, hash)
	user.SetMustChangePassword(false)
	if _, err := RevokeAll(tx, user.Id, because, now); err != nil {
		return err
	}
	if err := save(tx, user, now); err != nil {
		return err
	}
	if err := notifications.Queue(tx, notifications.PasswordChanged, user, nil, now); err != nil {
		return err
	}
	return audit.Append(tx, entry, now)
}

// change runs a change of one user in a transaction that is kept when it ends in a refusal, and forgets what was remembered of the user.
func (e *Engine) change(app core.App, userID string, apply func(tx core.App, user *collections.User) (refused, err error)) error {
	_, err := commitDecision(app, func(tx core.App) (struct{}, error, error) {
		user, err := collections.FindUser(tx, userID)
		if err != nil {
			return struct{}{}, nil, err
		}
		refused, err := apply(tx, user)
		return struct{}{}, refused, err
	})
	e.Forget(userID)
	return err
}

func save(tx core.App, user *collections.User, now time.Time) error {
	user.SetUpdatedAt(now)
	if err := tx.Save(user); err != nil {
		return fmt.Errorf("store user: %w", err)
	}
	return nil
}

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
