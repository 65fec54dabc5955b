package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// ringKey returns a new key in the format of VIGIL_ENCRYPTION_KEYS.
func ringKey(id string) string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	return id + ":" + base64.StdEncoding.EncodeToString(secret)
}

// withRing returns the practice's environment with another key ring.
func (p *practice) withRing(keys ...string) []string {
	return append(append([]string(nil), p.Env...), "VIGIL_ENCRYPTION_KEYS="+strings.Join(keys, ","))
}

// useRing sets the key ring of the next start.
func (p *practice) useRing(keys ...string) { p.Env, p.admin, p.super = p.withRing(keys...), "", "" }

// ownKey returns the key that the practice was created with, and its id.
func (p *practice) ownKey() (key, id string) {
	key = valueOf(p.Env, "VIGIL_ENCRYPTION_KEYS")
	id, _, _ = strings.Cut(key, ":")
	return key, id
}

// wantRefused runs a command that must exit with status 1 and one line that names the missing keys, in order.
func (p *practice) wantRefused(t *testing.T, env []string, missing string, args ...string) {
	t.Helper()
	status, out, errOut := vigil(t, env, "", append(args, "--dir", p.Dir)...)
	said := strings.TrimSpace(errOut)
	if status != 1 || out != "" || strings.Contains(said, "\n") || !strings.HasSuffix(said, "lacks or has with other bytes: "+missing) {
		t.Errorf("vigil %s ended with %d, want a refusal that names %s\n%s%s", strings.Join(args, " "), status, missing, out, errOut)
	}
	for _, pair := range env {
		if secret := valueOf([]string{pair}, "VIGIL_ENCRYPTION_KEYS"); secret != "" && strings.Contains(errOut, secret[len(secret)-40:]) {
			t.Error("the refusal shows a key")
		}
	}
}

// allSealedValues returns every sealed column of every row except in the audit log.
func allSealedValues(t *testing.T, db *dbx.DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, table := range []string{"patients", "users", "sealed_keys", "ring_keys"} {
		var rows []dbx.NullStringMap
		if err := db.Select().From(table).All(&rows); err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			for name, value := range row {
				if strings.HasPrefix(value.String, "v1:") || strings.HasPrefix(value.String, "v2:") {
					all[fmt.Sprint(table, " ", i, " ", name)] = value.String
				}
			}
		}
	}
	return all
}

// No command opens a folder with a key ring that lacks a key in use, and a refused command changes nothing.
func TestWrongRingIsRefused(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	a, aID := p.ownKey()
	b, c := ringKey("b"), ringKey("c")
	p.serve(t, "")
	patient := p.patient(t, object{"last_name": "Kept"})
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}

	// From here on both keys are in use: patients under the first, new values under the second.
	p.useRing(b, a)
	p.serve(t, "")
	p.patient(t, object{"last_name": "Later"})
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	before := allSealedValues(t, p.database(t))
	swapped := []string{aID + ":" + strings.SplitN(b, ":", 2)[1], "b:" + strings.SplitN(a, ":", 2)[1]}
	both := strings.Join([]string{"b", aID}, ", ")
	if aID < "b" {
		both = strings.Join([]string{aID, "b"}, ", ")
	}
	for name, tc := range map[string]struct {
		ring    []string
		missing string
	}{
		"the old one alone":     {[]string{a}, "b"},
		"the new one alone":     {[]string{b}, aID},
		"neither":               {[]string{c}, both},
		"a third first":         {[]string{c, a}, "b"},
		"other bytes, new":      {[]string{ringKey("b"), a}, "b"},
		"other bytes, old":      {[]string{b, ringKey(aID)}, aID},
		"other bytes, no first": {[]string{a, ringKey("b")}, "b"},
		"bytes swapped":         {swapped, both},
	} {
		t.Run(name, func(t *testing.T) {
			env := p.withRing(tc.ring...)
			p.wantRefused(t, env, tc.missing, "serve", "--http", freeAddr(t))
			p.wantRefused(t, env, tc.missing, "keys", "rotate")
			p.wantRefused(t, env, tc.missing, "admin", "create", "--email", "second@vigil.test", "--first-name", "Bo", "--last-name", "Second")
			p.wantRefused(t, env, tc.missing, "backup", "create")
			p.wantRefused(t, env, tc.missing, "ingestion", "replay")
		})
	}
	for name, value := range allSealedValues(t, p.database(t)) {
		if before[name] != value {
			t.Errorf("%s changed under a ring that was refused", name)
		}
	}

	p.useRing(a, b) // the order does not matter
	p.serve(t, "")
	wantAt(t, p.get(t, "/api/v1/patients/"+patient+"/", p.Admin(t)).expect(t, 200), object{"last_name": "Kept"})
}

// A folder without a key register is scanned once; later values of unregistered keys are found among the newest.
func TestUnregisteredKeys(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	a, aID := p.ownKey()
	b := ringKey("b")
	p.useRing(b, a)
	p.serve(t, "")
	p.patient(t, object{"last_name": "Sealed"})
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	db := p.writable(t)
	if _, err := db.NewQuery("DELETE FROM ring_keys").Execute(); err != nil {
		t.Fatal(err)
	}
	serve := []string{"serve", "--http", freeAddr(t)}
	p.wantRefused(t, p.withRing(a), "b", serve...)
	p.wantRefused(t, p.withRing(b), aID, serve...)
	p.wantRefused(t, p.withRing(ringKey("b"), a), "b", serve...)
	if n := number(t, db, "SELECT COUNT(*) FROM ring_keys"); n > 0 {
		t.Errorf("%d keys were registered by starts that were refused", n)
	}
	p.serve(t, "")
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	if n := number(t, db, "SELECT COUNT(*) FROM ring_keys"); n != 2 {
		t.Errorf("%d keys are registered, want 2", n)
	}
	if _, err := db.NewQuery("DELETE FROM ring_keys WHERE key_id = 'b'").Execute(); err != nil {
		t.Fatal(err)
	}
	p.wantRefused(t, p.withRing(a), "b", serve...)
	for _, ring := range [][]string{{b}, {a}} {
		if status, _, _ := vigil(t, p.withRing(ring...), "", "backup", "create", "--dir", p.Dir); status != 1 {
			t.Errorf("a backup was taken with the ring %.2q", ring)
		}
	}
}

// While a service runs, no command seals values that the service cannot open.
func TestCommandKeyMissingInService(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	a, aID := p.ownKey()
	b := ringKey("b")
	p.serve(t, "")
	patient := p.patient(t, object{"last_name": "Kept"})
	db := p.database(t)
	before := allSealedValues(t, db)
	imposter := strings.SplitN(ringKey("x"), ":", 2)[1]
	refused := func(env []string, words string) {
		t.Helper()
		for _, args := range [][]string{
			{"keys", "rotate"},
			{"admin", "create", "--email", "second@vigil.test", "--first-name", "Bo", "--last-name", "Second"},
			{"ingestion", "replay"},
		} {
			status, out, errOut := vigil(t, env, "", append(args, "--dir", p.Dir)...)
			if status != 1 || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, words) {
				t.Errorf("vigil %v ended with %d\n%s%s", args, status, out, errOut)
			}
		}
	}
	refused(p.withRing(b, a), "the running service does not hold key b")
	if n := number(t, db, "SELECT COUNT(*) FROM ring_keys"); n != 1 {
		t.Errorf("%d keys are registered", n)
	}
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	p.process = launchAt(t, freeAddr(t), p.Dir, p.withRing(a, "b:"+imposter), "serve") // another key with the same id b
	p.URL = p.process.URL
	refused(p.withRing(b, a), "the running service does not hold key b")
	for name, value := range allSealedValues(t, db) {
		if before[name] != value {
			t.Errorf("%s changed", name)
		}
	}
	wantAt(t, p.get(t, "/api/v1/patients/"+patient+"/", p.Admin(t)).expect(t, 200), object{"last_name": "Kept"})
	p.Kill() // its registered ring remains but does not apply to a stopped service

	status, out, errOut := vigil(t, p.withRing(b, a), "", "keys", "rotate", "--dir", p.Dir)
	if status != 0 || !strings.Contains(out, "re-encrypted under key b.") {
		t.Fatalf("without a service: %d\n%s%s", status, out, errOut)
	}
	wantNothingUnder(t, db, aID, "service_keys")
	p.useRing(b)
	p.serve(t, "")
	wantAt(t, p.get(t, "/api/v1/patients/"+patient+"/", p.Admin(t)).expect(t, 200), object{"last_name": "Kept"})
	status, out, errOut = vigil(t, p.withRing(b), password+"\n", "admin", "create", "--email", "second@vigil.test", "--first-name", "Bo", "--last-name", "Second",
		"--password-stdin", "--dir", p.Dir)
	if status != 0 {
		t.Errorf("a command with the service's own ring ended with %d\n%s%s", status, out, errOut)
	}
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	if n := number(t, db, "SELECT COUNT(*) FROM service_keys"); n > 0 {
		t.Errorf("the service has ended and still holds %d keys", n)
	}
	p.wantRefused(t, p.withRing(a), "b", "serve", "--http", freeAddr(t))
}

// A key that the running service still seals with is not retired, even if the rotation finds no value under it.
func TestRotationWithServiceOnOldKey(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	a, aID := p.ownKey()
	b := ringKey("b")
	p.useRing(a, b)
	p.serve(t, "")
	first := p.patient(t, object{"last_name": "First"})
	status, out, errOut := vigil(t, p.withRing(b, a), "", "keys", "rotate", "--dir", p.Dir)
	if status != 0 || !strings.Contains(out, "Key "+aID+" has to stay in the ring: the running service seals under it.") {
		t.Errorf("keys rotate ended with %d\n%s%s", status, out, errOut)
	}
	p.patient(t, object{"last_name": "Second"})
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	serve := []string{"serve", "--http", freeAddr(t)}
	p.wantRefused(t, p.withRing(b), aID, serve...)
	p.wantRefused(t, p.withRing(a), "b", serve...)
	if status, out, errOut := vigil(t, p.withRing(b, a), "", "keys", "rotate", "--dir", p.Dir); status != 0 || strings.Contains(out, "has to stay") {
		t.Errorf("keys rotate ended with %d\n%s%s", status, out, errOut)
	}
	p.wantRefused(t, p.withRing(a), "b", serve...)
	p.useRing(b)
	p.serve(t, "")
	wantAt(t, p.get(t, "/api/v1/patients/"+first+"/", p.Admin(t)).expect(t, 200), object{"last_name": "First"})
}

// A damaged value keeps its key from being retired, and the rotation names its record.
func TestRotationWithDamagedValue(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	a, aID := p.ownKey()
	b := ringKey("b")
	p.serve(t, "")
	patient := p.patient(t, object{"last_name": "Broken"})
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	damaged := damage(t, p.writable(t), "patients", "last_name", patient)
	status, out, errOut := vigil(t, p.withRing(b, a), "", "keys", "rotate", "--dir", p.Dir)
	if status != 0 || !strings.Contains(out, "patients "+patient+" last_name") || !strings.Contains(out, "Key "+aID+" has to stay in the ring: 1 values lie under it.") {
		t.Errorf("keys rotate ended with %d\n%s%s", status, out, errOut)
	}
	if now := lastNameColumn(t, p.database(t), patient); now != damaged {
		t.Errorf("the damaged value changed to %q", now)
	}
	p.wantRefused(t, p.withRing(b), aID, "serve", "--http", freeAddr(t))
}

// writable opens the practice's database for changes that bypass the service.
func (p *practice) writable(t *testing.T) *dbx.DB {
	t.Helper()
	db := sqlite.File(filepath.Join(p.Dir, "data.db"), "busy_timeout(10000)")
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// damage changes one byte of a stored value.
func damage(t *testing.T, db *dbx.DB, table, column, id string) (damaged string) {
	t.Helper()
	var sealed string
	if err := db.Select(column).From(table).Where(dbx.HashExp{"id": id}).Row(&sealed); err != nil || sealed == "" {
		t.Fatalf("%s.%s of %s is %q, %v", table, column, id, sealed, err)
	}
	at := strings.LastIndexByte(sealed, ':') + 3
	other := byte('A')
	if sealed[at] == other {
		other = 'B'
	}
	damaged = sealed[:at] + string(other) + sealed[at+1:]
	if _, err := db.Update(table, dbx.Params{column: damaged}, dbx.HashExp{"id": id}).Execute(); err != nil {
		t.Fatal(err)
	}
	return damaged
}
