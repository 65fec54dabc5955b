package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
)

// A challenge carries its end and a keyed hash of what it was made for, so that asking for one stores nothing: the doors that give them out
// are open to everybody. Only one that was answered is stored, until its time is over, so that it works once.
const (
	challengeLife   = 5 * time.Minute
	challengeRandom = 16
	challengeEnd    = challengeRandom + 8
	challengeBytes  = challengeEnd + sha256.Size
)

// challengeState is what became of a challenge.
type challengeState int

const (
	challengeForeign challengeState = iota // not ours, or made for somebody or something else
	challengeEnded                         // its time is over
	challengeHolds
)

// newChallenge makes a challenge for a purpose that names what and whom it is for.
func (e *Engine) newChallenge(purpose string, now time.Time) ([]byte, error) {
	challenge := make([]byte, challengeEnd, challengeBytes)
	_, _ = rand.Read(challenge[:challengeRandom]) // never fails
	binary.BigEndian.PutUint64(challenge[challengeRandom:], uint64(now.Add(challengeLife).UnixMicro()))
	mac, err := e.challengeMAC(purpose, challenge)
	return append(challenge, mac...), err
}

// checkChallenge says whether an answered challenge, as the browser wrote it, was made for the purpose, and when it ends.
func (e *Engine) checkChallenge(text, purpose string, now time.Time) (state challengeState, ends time.Time, err error) {
	challenge, whole := readChallenge(text)
	if !whole {
		return challengeForeign, ends, nil
	}
	mac, err := e.challengeMAC(purpose, challenge[:challengeEnd])
	if err != nil || !hmac.Equal(mac, challenge[challengeEnd:]) {
		return challengeForeign, ends, err
	}
	ends = time.UnixMicro(int64(binary.BigEndian.Uint64(challenge[challengeRandom:challengeEnd]))).UTC() //nolint:gosec // ours, checked above
	if !now.Before(ends) {
		return challengeEnded, ends, nil
	}
	return challengeHolds, ends, nil
}

func readChallenge(text string) (challenge []byte, whole bool) {
	challenge, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return challenge, err == nil && len(challenge) == challengeBytes
}

func (e *Engine) challengeMAC(purpose string, head []byte) ([]byte, error) {
	key, err := e.sealer.DeriveKey("passkey challenge")
	if err != nil {
		return nil, err
	}
	return phi.MAC(key, string(head)+purpose), nil // the head is of fixed length, so that nothing of the purpose can pass for it
}
