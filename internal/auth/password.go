package auth

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/notifications"
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
		kept    bool
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
		if !rule.kept {
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
	OldPassword        input.String `json:"old_password"`
	NewPassword        input.String `json:"new_password"`
	NewPasswordConfirm input.String `json:"new_password_confirm"`
}

const becausePassword = "password_change"

// ChangePassword sets a new password for the caller. Every token ends, the caller's own too.
// Source: docs/decisions/authentication.md, "Password policy errors" and "Effects of a password change".
func (e *Engine) ChangePassword(ctx context.Context, app core.App, caller Caller, body PasswordBody, from audit.Origin, now time.Time) error {
	ctx, done := waiting(ctx)
	defer done()
	checks := input.NewChecks()
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
func readNewPassword(checks *input.Checks, password, confirm input.String) string {
	wanted := checks.Secret("new_password", password, 0)
	repeated := checks.Secret("new_password_confirm", confirm, 0)
	if wanted != "" && repeated != "" && wanted != repeated {
		checks.Reject("new_password_confirm", "The two passwords differ.")
	}
	return wanted
}

// hashNewPassword holds the policy for a user's next password and returns its hash, or all complaints so far.
func (e *Engine) hashNewPassword(ctx context.Context, app core.App, checks *input.Checks, password string, user *collections.User) (string, error) {
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
	if _, err := RevokeAll(tx, user.Id, because); err != nil {
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
