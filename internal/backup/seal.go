package backup

import (
	"crypto/rand"
	"fmt"

	"filippo.io/age"

	"github.com/vigilhealth/vigil/internal/phi"
)

// keyStanza is the line in an age header that holds the file key, sealed under the encryption ring.
const keyStanza = "vigil-key-ring"

// filePurpose binds a sealed file key to backups.
const filePurpose = "backup.file_key"

// ring lets age wrap file keys with the keys that protect the records: what opens the database opens its backup, and
// nothing else has to be kept.
type ring struct{ keys *phi.KeyRing }

var (
	_ age.Recipient = ring{}
	_ age.Identity  = ring{}
)

// Wrap seals the file key under the first key of the ring.
func (r ring) Wrap(fileKey []byte) ([]*age.Stanza, error) {
	id := rand.Text()
	sealed, err := r.keys.Seal(string(fileKey), filePurpose, id)
	if err != nil {
		return nil, fmt.Errorf("seal file key: %w", err)
	}
	return []*age.Stanza{{Type: keyStanza, Args: []string{id}, Body: []byte(sealed)}}, nil
}

// Unwrap opens the file key with whichever key of the ring sealed it.
func (r ring) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	for _, stanza := range stanzas {
		if stanza.Type != keyStanza || len(stanza.Args) != 1 {
			continue
		}
		if fileKey, err := r.keys.Open(string(stanza.Body), filePurpose, stanza.Args[0]); err == nil {
			return []byte(fileKey), nil
		}
	}
	return nil, age.ErrIncorrectIdentity
}

// Keys open and seal backups.
type Keys struct {
	Ring *phi.KeyRing
	// Recipients are further age recipients ("age1..."), such as the public half of a key in a safe.
	Recipients []string
}

func (k Keys) recipients() ([]age.Recipient, error) {
	to := []age.Recipient{ring{k.Ring}}
	for _, text := range k.Recipients {
		recipient, err := age.ParseX25519Recipient(text)
		if err != nil {
			return nil, fmt.Errorf("backup recipient: %w", err)
		}
		to = append(to, recipient)
	}
	return to, nil
}
