package auth

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ccojocar/zxcvbn-go"
	"github.com/pocketbase/pocketbase/core"
	"golang.org/x/crypto/bcrypt"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Limits of a password's length. A password longer than bcrypt reads is rejected, not truncated: a
// prefix of it would match otherwise.
const (
	minPasswordCharacters = 12
	maxPasswordBytes      = 71
)

// minPasswordScore is the lowest zxcvbn score, of 0 to 4, that a password may have. At 3 an
// attacker needs more than 10^8 guesses.
const minPasswordScore = 3

// contextWords are words that attackers try first.
var contextWords = []string{
	"vigil", "vigilhealth", "demo", "admin", "administrator", "provider", "doctor", "nurse", "patient", "staff", "clinic", "practice", "medical", "health",
}

// Keys of the app's store.
const (
	practiceWords     = "vigil.practice_words"
	permittedPassword = "vigil.permitted_password"
)

// SetPracticeWords sets the practice's name. Its words do not count as a part of a strong password.
func SetPracticeWords(app core.App, practice string) { app.Store().Set(practiceWords, practice) }

// PermitPassword permits one published password: the demo's.
func PermitPassword(app core.App, password string) { app.Store().Set(permittedPassword, password) }

// Owner describes the user of a password. A password must not be derived from these values.
type Owner struct{ Email, FirstName, LastName string }

// PasswordProblems returns one message for each rule of the password policy that the password breaks. Source: docs/decisions/authentication.md,
// "Password policy errors".
func PasswordProblems(app core.App, password string, owner Owner) (broken []string) {
	if permitted, _ := app.Store().Get(permittedPassword).(string); permitted != "" && password == permitted {
		return nil
	}
	practice, _ := app.Store().Get(practiceWords).(string)
	words := owner.words(practice)
	named := isMadeOf(lettersOf(password, 'i'), words) || isMadeOf(lettersOf(password, 'l'), words)
	rules := []struct {
		met     bool
		message string
	}{
		{utf8.RuneCountInString(password) >= minPasswordCharacters, "Must have at least 12 characters."},
		{len(password) <= maxPasswordBytes, "Must have no more than 71 bytes in UTF-8."},
		{strings.ContainsFunc(password, unicode.IsUpper), "Must have an upper-case letter."},
		{strings.ContainsFunc(password, unicode.IsLower), "Must have a lower-case letter."},
		{strings.ContainsFunc(password, unicode.IsDigit), "Must have a digit."},
		{strings.ContainsFunc(password, isSpecial), "Must have a special character."},
		{named || !isGuessable(password, words), "Is too easy to guess: use several words that have nothing to do with each other."},
		{owner.Email == "" || !strings.Contains(strings.ToLower(password), FoldEmail(owner.Email)), "Must not contain your e-mail address."},
		{!named, "Must not be made of your name, your e-mail address, or the name of the practice or of this service."},
	}
	for _, rule := range rules {
		if !rule.met {
			broken = append(broken, rule.message)
		}
	}
	return broken
}

// isGuessable reports whether zxcvbn rates a password as weak, alone or repeated. It has common
// passwords, words and names, dates, keyboard patterns and the usual substitutes for letters.
func isGuessable(password string, words []string) bool {
	if len(password) < minPasswordCharacters || len(password) > maxPasswordBytes {
		return false // refused for its length; zxcvbn's time grows with it
	}
	for size := 1; size <= len(password)/2; size++ {
		if len(password)%size == 0 && strings.Repeat(password[:size], len(password)/size) == password {
			password = password[:size]
			break
		}
	}
	return zxcvbn.PasswordStrength(password, words).Score < minPasswordScore
}

func isSpecial(r rune) bool {
	return unicode.IsPrint(r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != ' '
}

// words returns the words of the owner, the practice and the product, in lower case and as [lettersOf] returns them.
func (o Owner) words(practice string) (words []string) {
	local, _, _ := strings.Cut(o.Email, "@")
	names := strings.Join([]string{local, o.FirstName, o.LastName, practice}, " ")
	for _, word := range append(strings.FieldsFunc(names, func(r rune) bool { return !unicode.IsLetter(r) }), contextWords...) {
		if word = strings.ToLower(word); len(word) > 1 {
			words = append(words, word)
		}
	}
	return words
}

// isMadeOf reports whether a text consists only of the words, each used any number of times.
func isMadeOf(text string, words []string) bool {
	made := make([]bool, len(text)+1)
	made[0] = true
	for end := 1; end <= len(text); end++ {
		made[end] = slices.ContainsFunc(words, func(word string) bool {
			return len(word) <= end && made[end-len(word)] && strings.HasSuffix(text[:end], word)
		})
	}
	return text != "" && made[len(text)]
}

// letterSigns are the characters that commonly substitute letters; 1 stands for i or l.
var letterSigns = map[rune]rune{'0': 'o', '1': '1', '3': 'e', '4': 'a', '@': 'a', '5': 's', '$': 's', '7': 't', '!': 'i'}

// lettersOf returns the letters of a text in lower case, including those that substitute characters
// stand for; one is the letter for 1.
func lettersOf(text string, one rune) string {
	runes, letters := []rune(text), strings.Builder{}
	for i, r := range runes {
		sign, isSign := letterSigns[r]
		switch {
		case unicode.IsLetter(r):
			letters.WriteRune(unicode.ToLower(r))
		case isSign && i > 0 && i+1 < len(runes) && unicode.IsLetter(runes[i-1]) && unicode.IsLetter(runes[i+1]):
			if sign == '1' {
				sign = one
			}
			letters.WriteRune(sign)
		}
	}
	return letters.String()
}

// PasswordBody is a request to change the caller's password.
type PasswordBody struct {
	OldPassword        validate.String `json:"old_password"`
	NewPassword        validate.String `json:"new_password"`
	NewPasswordConfirm validate.String `json:"new_password_confirm"`
}

const reasonPasswordChange = "password_change"

// ChangePassword sets a new password for the caller and revokes every token, including the caller's own.
// Source: docs/decisions/authentication.md, "Password policy errors" and "Effects of a password change".
func (e *Engine) ChangePassword(ctx context.Context, app core.App, caller Caller, body PasswordBody, from audit.Origin, now time.Time) error {
	ctx, done := withQueueTimeout(ctx)
	defer done()
	checks := validate.NewChecks()
	old := checks.Secret("old_password", body.OldPassword, 0)
	password := readNewPassword(checks, body.NewPassword, body.NewPasswordConfirm)
	if len(checks.Fields["old_password"]) > 0 {
		return checks.Err()
	}
	user, err := e.verifyPassword(ctx, app, caller, "old_password", old, now)
	if err != nil {
		return err
	}
	hash, err := e.hashNewPassword(ctx, app, checks, password, user)
	if err != nil {
		return err
	}
	proven := user.TokenKey()
	return e.changeUser(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		if user.TokenKey() != proven { // the password changed after the check
			return tokenInvalid(), nil
		}
		return nil, replacePassword(tx, user, hash, reasonPasswordChange, userEntry(user, audit.PasswordChange, caller.Actor(from)), now)
	})
}

// readNewPassword reads a password that is sent twice. It returns "" if the field was rejected.
func readNewPassword(checks *validate.Checks, password, confirm validate.String) string {
	wanted := checks.Secret("new_password", password, 0)
	repeated := checks.Secret("new_password_confirm", confirm, 0)
	if wanted != "" && repeated != "" && wanted != repeated {
		checks.Reject("new_password_confirm", "The two passwords differ.")
	}
	return wanted
}

// hashNewPassword enforces the password policy and returns the hash of the new password, or all field errors so far.
func (e *Engine) hashNewPassword(ctx context.Context, app core.App, checks *validate.Checks, password string, user *collections.User) (string, error) {
	if password != "" {
		for _, broken := range PasswordProblems(app, password, Owner{user.Email(), user.FirstName(), user.LastName()}) {
			checks.Reject("new_password", broken)
		}
	}
	if err := checks.Err(); err != nil { // includes a missing password
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

// replacePassword stores a new password, ends every session and notifies the user by mail.
func replacePassword(tx core.App, user *collections.User, hash, reason string, entry audit.Entry, now time.Time) error {
	setPassword(user, hash)
	user.SetMustChangePassword(false)
	if _, err := RevokeAll(tx, user.Id, reason, now); err != nil {
		return err
	}
	if err := saveUser(tx, user, now); err != nil {
		return err
	}
	if err := notifications.QueueMail(tx, notifications.PasswordChanged, user, nil, now); err != nil {
		return err
	}
	return audit.Append(tx, entry, now)
}

// changeUser applies a change to one user in a transaction that is committed even if it ends in a refusal, and evicts the user from the cache.
func (e *Engine) changeUser(app core.App, userID string, apply func(tx core.App, user *collections.User) (refused, err error)) error {
	_, err := commitDecision(app, func(tx core.App) (struct{}, error, error) {
		user, err := collections.FindUser(tx, userID)
		if err != nil {
			return struct{}{}, nil, err
		}
		refused, err := apply(tx, user)
		return struct{}{}, refused, err
	})
	e.Evict(userID)
	return err
}

func saveUser(tx core.App, user *collections.User, now time.Time) error {
	user.SetUpdatedAt(now)
	if err := tx.Save(user); err != nil {
		return fmt.Errorf("store user: %w", err)
	}
	return nil
}

// hashCost returns the bcrypt cost configured on PocketBase's password field.
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

// hashPassword returns the bcrypt hash. It takes about 50 ms, so callers must not hold a transaction.
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

// hash waits for a slot and returns the bcrypt hash.
func (e *Engine) hash(ctx context.Context, app core.App, password string) (string, error) {
	release, err := e.hashLimiter.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	return hashPassword(app, password)
}

// matches waits for a slot and reports whether the password has the hash. An overlong password is compared by its first 71 bytes, so that it
// takes the same time, and never matches.
func (e *Engine) matches(ctx context.Context, hash, password string) (bool, error) {
	release, err := e.hashLimiter.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	read := password[:min(len(password), maxPasswordBytes)]
	return bcrypt.CompareHashAndPassword([]byte(hash), []byte(read)) == nil && len(password) <= maxPasswordBytes, nil
}

// setPassword stores a password hash and revokes every access token. PocketBase revokes them only for passwords that it hashes itself.
func setPassword(user *collections.User, hash string) {
	user.SetRaw(core.FieldNamePassword, &core.PasswordFieldValue{Hash: hash})
	user.RefreshTokenKey()
}

// decoy is the salt and digest of an unknown password.
const decoy = "wYvVQJ1mZ8y0sXc3dP5hUeT7bRk2nLq4aFi6gCj8oEu1xNzMtHpSK"

// decoyHash returns a hash that costs as much to check as a real one.
func decoyHash(app core.App) (string, error) {
	cost, err := hashCost(app)
	return fmt.Sprintf("$2a$%02d$%s", cost, decoy), err
}
