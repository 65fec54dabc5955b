package collections

import (
	"context"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// IdempotencyKey is a caller's use of a key. ID and Request are keyed hashes, so the row reveals neither the key nor the request.
type IdempotencyKey struct {
	ID, Request string
	Answer      string // "" until stored
	At          time.Time
}

// KeyHash returns the row id for a caller's key.
func KeyHash(caller, key string) (string, error) {
	return BlindIndex("idempotency key", caller+"\n"+key)
}

// RequestHash identifies a request.
func RequestHash(method, target string, body []byte) (string, error) {
	return BlindIndex("idempotent request", method+" "+target+"\n"+string(body))
}

// FindIdempotencyKey finds the use of a key after a time.
func FindIdempotencyKey(app core.App, id, key string, after time.Time) (use IdempotencyKey, found bool, err error) {
	var answer, at string
	err = app.DB().NewQuery(`SELECT request, answer, created_at FROM idempotency_keys WHERE id = {:id} AND created_at > {:after}`).
		Bind(dbx.Params{"id": id, "after": FormatInstant(after)}).Row(&use.Request, &answer, &at)
	if err != nil {
		return use, false, wrap(IgnoreNotFound(err), "find idempotency key")
	}
	use.ID, use.At = id, ParseInstant(at)
	if answer != "" {
		if use.Answer, err = openAnswer(answer, key, id); err != nil {
			use.Answer = "" // treated as never stored
		}
	}
	return use, true, nil
}

// ReserveIdempotencyKey stores the use of a key without an answer. reserved is false if the key was already used since a time.
func ReserveIdempotencyKey(tx core.App, use IdempotencyKey, since time.Time) (reserved bool, err error) {
	n, err := execCounted(tx, "reserve idempotency key", `INSERT INTO idempotency_keys (id, request, answer, created_at) VALUES ({:id}, {:request}, '', {:at})
		ON CONFLICT (id) DO UPDATE SET request = excluded.request, answer = '', created_at = excluded.created_at WHERE created_at <= {:since}`,
		dbx.Params{"id": use.ID, "request": use.Request, "at": FormatInstant(use.At), "since": FormatInstant(since)})
	return n == 1, err
}

// StoreIdempotencyKey stores the answer as sealed by [SealAnswer].
func StoreIdempotencyKey(tx core.App, use IdempotencyKey) error {
	_, err := execCounted(tx, "store idempotency key", `INSERT INTO idempotency_keys (id, request, answer, created_at) VALUES ({:id}, {:request}, {:answer}, {:at})
		ON CONFLICT (id) DO UPDATE SET request = excluded.request, answer = excluded.answer, created_at = excluded.created_at`,
		dbx.Params{"id": use.ID, "request": use.Request, "answer": use.Answer, "at": FormatInstant(use.At)})
	return err
}

// DeleteIdempotencyKey deletes the use of a key.
func DeleteIdempotencyKey(app core.App, id string) error {
	_, err := execCounted(app, "delete idempotency key", `DELETE FROM idempotency_keys WHERE id = {:id}`, dbx.Params{"id": id})
	return err
}

// IdempotencyKeyLifetime is how long a key is stored. Source: draft-ietf-httpapi-idempotency-key-header-07, section 2.3, which leaves the time to
// the server.
const IdempotencyKeyLifetime = 24 * time.Hour

// purgeBatch bounds how many keys one transaction deletes, so that the writer of readings never waits long for it.
const purgeBatch = 500

// PurgeIdempotencyKeys deletes expired keys and returns how many.
func PurgeIdempotencyKeys(ctx context.Context, app core.App, now time.Time) (deleted int, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return deleted, err
		}
		n, err := execCounted(app, "delete idempotency keys", `DELETE FROM idempotency_keys WHERE id IN
			(SELECT id FROM idempotency_keys WHERE created_at <= {:until} ORDER BY created_at LIMIT +{:limit})`,
			dbx.Params{"until": FormatInstant(now.Add(-IdempotencyKeyLifetime)), "limit": purgeBatch})
		if deleted += int(n); err != nil || n < purgeBatch {
			return deleted, err
		}
	}
}

const answerPurpose = IdempotencyKeys + ".answer"

// SealAnswer encrypts an answer so that opening it requires both Vigil's keys and the caller's key: it may contain a secret that is shown only
// once. Source: docs/decisions/conventions.md, "Idempotency keys".
func SealAnswer(answer, key, id string) (string, error) {
	s := sealer.Load()
	if s == nil {
		return "", errNoSealer
	}
	ring, err := s.DetachedRing(key)
	if err != nil {
		return "", err
	}
	inner, err := ring.Seal(answer, answerPurpose, id)
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
	ring, err := sealer.Load().DetachedRing(key)
	if err != nil {
		return "", err
	}
	return ring.Open(inner, answerPurpose, id)
}
