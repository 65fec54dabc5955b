package vigiltest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// PushReceiver receives Web Push as a browser does. It is written from the RFCs and does not use the sending library.
type PushReceiver struct {
	t    testing.TB
	key  *ecdh.PrivateKey
	auth []byte
}

// NewPushReceiver generates the keys of a subscription.
func NewPushReceiver(t testing.TB) *PushReceiver {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	auth := make([]byte, 16)
	_, _ = rand.Read(auth)
	return &PushReceiver{t, key, auth}
}

// Subscription returns the subscription at an endpoint, as JSON.
func (r *PushReceiver) Subscription(endpoint string) string {
	encode := base64.RawURLEncoding.EncodeToString
	raw, err := json.Marshal(map[string]any{
		"endpoint": endpoint, "expirationTime": nil, "keys": map[string]string{"p256dh": encode(r.key.PublicKey().Bytes()), "auth": encode(r.auth)},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return string(raw)
}

// Open decrypts a push message; nil for an empty one. Source: RFC 8291, section 3.4; RFC 8188, section 2.
func (r *PushReceiver) Open(body []byte) (map[string]any, error) {
	if len(body) < 86 || body[20] != 65 {
		return nil, fmt.Errorf("%d bytes are too short for a push message", len(body))
	}
	salt, size, sender, record := body[:16], binary.BigEndian.Uint32(body[16:20]), body[21:86], body[86:]
	if uint32(len(record)) > size {
		return nil, fmt.Errorf("a record has %d bytes, more than the record size %d", len(record), size)
	}
	public, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		return nil, err
	}
	secret, err := r.key.ECDH(public)
	if err != nil {
		return nil, err
	}
	info := "WebPush: info\x00" + string(r.key.PublicKey().Bytes()) + string(sender)
	ikm, err := hkdf.Key(sha256.New, secret, r.auth, info, 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain, err := gcm.Open(nil, nonce, record, nil)
	if err != nil {
		return nil, err
	}
	plain = []byte(strings.TrimRight(string(plain), "\x00"))
	if len(plain) == 0 || plain[len(plain)-1] != 2 {
		return nil, fmt.Errorf("the last record does not end in 2")
	}
	if plain = plain[:len(plain)-1]; len(plain) == 0 {
		return nil, nil
	}
	var message map[string]any
	return message, json.Unmarshal(plain, &message)
}
