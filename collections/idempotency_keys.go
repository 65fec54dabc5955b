package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// IdempotencyKey is the use that a caller made of a key. ID and Request are keyed hashes, so that neither the key nor what was asked for
// can be told from the row.
type IdempotencyKey struct {
	ID, Request string
	Answer      string // "" while it is not known
	At          time.Time
}

// KeyHash is the id under which the use of a key by a caller is kept.
func KeyHash(caller, key string) (string, error) {
	return BlindIndex("idempotency key", caller+"\n"+key)
}

// RequestHash tells one request from another.
func RequestHash(method, target string, body []byte) (string, error) {
	return BlindIndex("idempotent request", method+" "+target+"\n"+string(body))
}

// FindIdempotencyKey finds the use of a key, unless it was made at a time or before.
func FindIdempotencyKey(app core.App, id, key string, after time.Time) (use IdempotencyKey, found bool, err error) {
	var answer, at string
	err = app.DB().NewQuery(`SELECT request, answer, created_at FROM idempotency_keys WHERE id = {:id} AND created_at > {:after}`).
		Bind(dbx.Params{"id": id, "after": Instant(after)}).Row(&use.Request, &answer, &at)
	if err != nil {
		return use, false, wrap(unlessMissing(err), "find idempotency key")
	}
	use.ID, use.At = id, ParseInstant(at)
	if answer != "" {
		if use.Answer, err = openAnswer(answer, key, id); err != nil {
			use.Answer = "" // as one that was never stored
		}
	}
	return use, true, nil
}

// NoteIdempotencyKey notes that something was done for the use of a key, beside which there is no other since a time.
func NoteIdempotencyKey(tx core.App, use IdempotencyKey, since time.Time) (noted bool, err error) {
	n, err := change(tx, "note idempotency key", `INSERT INTO idempotency_keys (id, request, answer, created_at) VALUES ({:id}, {:request}, '', {:at})
		ON CONFLICT (id) DO UPDATE SET request = excluded.request, answer = '', created_at = excluded.created_at WHERE created_at <= {:since}`,
		dbx.Params{"id": use.ID, "request": use.Request, "at": Instant(use.At), "since": Instant(since)})
	return n == 1, err
}

// StoreIdempotencyKey stores what was answered, as [SealAnswer] sealed it.
func StoreIdempotencyKey(tx core.App, use IdempotencyKey) error {
	_, err := change(tx, "store idempotency key", `INSERT INTO idempotency_keys (id, request, answer, created_at) VALUES ({:id}, {:request}, {:answer}, {:at})
		ON CONFLICT (id) DO UPDATE SET request = excluded.request, answer = excluded.answer, created_at = excluded.created_at`,
		dbx.Params{"id": use.ID, "request": use.Request, "answer": use.Answer, "at": Instant(use.At)})
	return err
}

// DropIdempotencyKey forgets the use of a key.
func DropIdempotencyKey(app core.App, id string) error {
	_, err := change(app, "drop idempotency key", `DELETE FROM idempotency_keys WHERE id = {:id}`, dbx.Params{"id": id})
	return err
}

// DropIdempotencyKeys forgets up to limit uses that were made at a time or before.
func DropIdempotencyKeys(app core.App, until time.Time, limit int) (gone int, err error) {
	n, err := change(app, "drop idempotency keys", `DELETE FROM idempotency_keys WHERE id IN
		(SELECT id FROM idempotency_keys WHERE created_at <= {:until} ORDER BY created_at LIMIT +{:limit})`,
		dbx.Params{"until": Instant(until), "limit": limit})
	return int(n), err
}

const answerPurpose = IdempotencyKeys + ".answer"

// SealAnswer seals what was answered so that it takes our keys and the caller's to open it: it may hold a secret that is to be shown once.
// Source: docs/decisions/conventions.md, "Idempotency keys".
func SealAnswer(answer, key, id string) (string, error) {
	s := sealer.Load()
	if s == nil {
		return "", errNoSealer
	}
	held, err := s.HeldWith(key)
	if err != nil {
		return "", err
	}
	inner, err := held.Seal(answer, answerPurpose, id)
	if err != nil {
		return "", fmt.Errorf("seal answer: %w", err)
	}
	return s.Seal(inner, answerPurpose, id)
}

func openAnswer(sealed, key, id string) (string, error) {
	inner, err := OpenValue(sealed, IdempotencyKeys, "answer", id)
	if err != nil {
		return "", err
	}
	held, err := sealer.Load().HeldWith(key)
	if err != nil {
		return "", err
	}
	return held.Open(inner, answerPurpose, id)
}
