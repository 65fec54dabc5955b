package phi_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vigilhealth/vigil/internal/phi"
)

func key(id string, fill byte) phi.Key {
	return phi.Key{ID: id, Secret: [phi.KeySize]byte(bytes.Repeat([]byte{fill}, phi.KeySize))}
}

func ring(t testing.TB, keys ...phi.Key) *phi.KeyRing {
	t.Helper()
	r, err := phi.NewKeyRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func seal(t testing.TB, r *phi.KeyRing, plain, purpose, row string) string {
	t.Helper()
	sealed, err := r.Seal(plain, purpose, row)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// Example seals a name under the first of two keys and opens it again.
func Example() {
	newest := phi.Key{ID: "2026-02", Secret: [32]byte{1}} // from the settings, never from code
	oldest := phi.Key{ID: "2025-11", Secret: [32]byte{2}}
	keys, err := phi.NewKeyRing(newest, oldest)
	if err != nil {
		fmt.Println(err)
		return
	}
	sealed, _ := keys.Seal("Ada", "patient.first_name", "p-1")
	opened, _ := keys.Open(sealed, "patient.first_name", "p-1")
	_, err = keys.Open(sealed, "patient.first_name", "p-2")

	keyID, _ := phi.KeyID(sealed)
	fmt.Println(keyID, opened)
	fmt.Println(err)
	// Output:
	// 2026-02 Ada
	// phi: sealed value does not belong here or was changed
}

func TestSealedFormat(t *testing.T) {
	r := ring(t, key("k-1", 7))
	sealed := seal(t, r, "Ada Lovelace", "patient.first_name", "p1")
	parts := strings.Split(sealed, ":")
	if len(parts) != 4 || parts[0] != "v2" || parts[1] != "k-1" {
		t.Fatalf("unexpected shape of %q", sealed)
	}
	nonce, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || len(nonce) != 12 {
		t.Fatalf("nonce: %d bytes, %v", len(nonce), err)
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[3])
	if err != nil {
		t.Fatal(err)
	}
	// Opened without the package, so that a change of the format is detected.
	plain, err := gcm(t, 7).Open(nil, nonce, body, []byte("v2|patient.first_name|p1"))
	if err != nil || string(plain) != "Ada Lovelace\x80\x00\x00\x00" {
		t.Fatalf("opened %q, %v", plain, err)
	}
	if again := seal(t, r, "Ada Lovelace", "patient.first_name", "p1"); again == sealed {
		t.Fatal("two seals of one value are equal")
	}
}

// gcm returns the cipher of a key of equal bytes, built without the package.
func gcm(t testing.TB, fill byte) cipher.AEAD {
	t.Helper()
	block, err := aes.NewCipher(bytes.Repeat([]byte{fill}, 32))
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	return aead
}

// sealedAs returns any plaintext sealed in any format under key("k-1", 7).
func sealedAs(t testing.TB, form, plain, bound string) string {
	t.Helper()
	nonce := []byte("twelve bytes")
	encode := base64.RawURLEncoding.EncodeToString
	return form + ":k-1:" + encode(nonce) + ":" + encode(gcm(t, 7).Seal(nil, nonce, []byte(plain), []byte(bound)))
}

// Values sealed by earlier releases open, and neither format opens as the other.
func TestFormatsDoNotOpenAsEachOther(t *testing.T) {
	r := ring(t, key("k-1", 7))
	for name, tc := range map[string]struct {
		sealed, plain string
		want          error
	}{
		"first form":                     {sealedAs(t, "v1", "Ada", "note|1"), "Ada", nil},
		"first form ends like a padding": {sealedAs(t, "v1", "Ada\x80\x00", "note|1"), "Ada\x80\x00", nil},
		"second form":                    {sealedAs(t, "v2", "Ada\x80\x00\x00", "v2|note|1"), "Ada", nil},
		"second form, relabelled":        {sealedAs(t, "v1", "Ada\x80\x00\x00", "v2|note|1"), "", phi.ErrAuthentication},
		"first form, relabelled":         {sealedAs(t, "v2", "Ada", "note|1"), "", phi.ErrAuthentication},
		"second form without padding":    {sealedAs(t, "v2", "Ada", "v2|note|1"), "", phi.ErrFormat},
		"second form of nothing":         {sealedAs(t, "v2", "\x80\x00", "v2|note|1"), "", phi.ErrFormat},
		"second form of zeros":           {sealedAs(t, "v2", "\x00\x00", "v2|note|1"), "", phi.ErrFormat},
		"third form":                     {sealedAs(t, "v3", "Ada\x80", "v3|note|1"), "", phi.ErrFormat},
	} {
		plain, err := r.Open(tc.sealed, "note", "1")
		if plain != tc.plain || !errors.Is(err, tc.want) {
			t.Errorf("%s: opened %q, %v", name, plain, err)
		}
	}
	if !r.NeedsRotation(sealedAs(t, "v1", "Ada", "note|1")) || r.NeedsRotation(seal(t, r, "Ada", "note", "1")) {
		t.Error("a v1 value must need rotation, and a v2 value must not")
	}
	if !strings.HasPrefix(seal(t, r, "Ada", "note", "1"), r.SealedPrefix()) {
		t.Errorf("no sealed value begins with %s", r.SealedPrefix())
	}
}

// The ciphertext of a name has one of three sizes; that of a long text reveals its length to within an eighth.
func TestPaddedSizes(t *testing.T) {
	r := ring(t, key("k-1", 7))
	sizes := map[int]int{}
	last := 0
	for n := 1; n <= 70_000; n += 1 + n/200 {
		size := len(seal(t, r, strings.Repeat("x", n), "note", "1"))
		if n <= 40 {
			sizes[size]++
		}
		if size < last {
			t.Fatalf("%d bytes give %d, less than a shorter text", n, size)
		}
		last = size
		body := (size-len("v2:k-1:")-17)*3/4 - 16
		if most := max(n+16, n+n/8+1); body <= n || body > most {
			t.Fatalf("%d bytes are padded to %d, want more, and %d at most", n, body, most)
		}
	}
	if len(sizes) != 3 {
		t.Errorf("lengths 1 to 40 give the sizes %v", sizes)
	}
	for _, n := range []int{1, 15, 16, 31, 32, 40} {
		if plain, err := r.Open(seal(t, r, strings.Repeat("\x00", n), "note", "1"), "note", "1"); err != nil || plain != strings.Repeat("\x00", n) {
			t.Errorf("%d zero bytes open as %q, %v", n, plain, err)
		}
	}
}

// known is "Ada" as patient.first_name of p1 under key("k-1", 7), in the format of earlier releases; knownPadded is in the current one.
const (
	known       = "v1:k-1:AAECAwQFBgcICQoL:WeWIPr6K6OzMqfpOcu4kLua1Sg"
	knownPadded = "v2:k-1:AAECAwQFBgcICQoL:WeWI8B0J2Ul3suWc4lhs-rWzsMROD_T0hGAEaoa7yxY"
)

// TestOpenKnownValue opens values sealed by earlier releases.
func TestOpenKnownValue(t *testing.T) {
	for _, sealed := range []string{known, knownPadded} {
		if got, err := ring(t, key("k-1", 7)).Open(sealed, "patient.first_name", "p1"); err != nil || got != "Ada" {
			t.Errorf("opened %q, %v", got, err)
		}
	}
}

func TestEmptyStaysEmpty(t *testing.T) {
	r := ring(t, key("a", 1))
	if sealed := seal(t, r, "", "p", "1"); sealed != "" {
		t.Fatalf("empty sealed to %q", sealed)
	}
	if plain, err := r.Open("", "p", "1"); err != nil || plain != "" {
		t.Fatalf("empty opened to %q, %v", plain, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	r := ring(t, key("a", 1), key("b", 2))
	sealed := seal(t, r, "a secret value", "note", "1")
	other := seal(t, r, "another value", "note", "1")
	part := func(s string, i int) string { return strings.Split(s, ":")[i] }
	join := func(parts ...string) string { return strings.Join(parts, ":") }
	nonce, body := part(sealed, 2), part(sealed, 3)
	flipped := "A" + body[1:]
	if body[0] == 'A' {
		flipped = "B" + body[1:]
	}

	for _, tc := range []struct {
		name, sealed, purpose, row string
		want                       error
	}{
		{"other row", sealed, "note", "2", phi.ErrAuthentication},
		{"other purpose", sealed, "reason", "1", phi.ErrAuthentication},
		{"changed ciphertext", join("v2", "a", nonce, flipped), "note", "1", phi.ErrAuthentication},
		{"cut ciphertext", sealed[:len(sealed)-3], "note", "1", phi.ErrAuthentication},
		{"swapped nonce", join("v2", "a", part(other, 2), body), "note", "1", phi.ErrAuthentication},
		{"swapped ciphertext", join("v2", "a", nonce, part(other, 3)), "note", "1", phi.ErrAuthentication},
		{"relabelled key", join("v2", "b", nonce, body), "note", "1", phi.ErrAuthentication},
		{"unknown key", join("v2", "c", nonce, body), "note", "1", phi.ErrUnknownKey},
		{"plaintext", "Ada Lovelace", "note", "1", phi.ErrFormat},
		{"earlier version", join("v1", "a", nonce, body), "note", "1", phi.ErrAuthentication},
		{"later version", join("v3", "a", nonce, body), "note", "1", phi.ErrFormat},
		{"no key id", join("v2", "", nonce, body), "note", "1", phi.ErrFormat},
		{"three parts", join("v2", "a", body), "note", "1", phi.ErrFormat},
		{"five parts", sealed + ":AAAA", "note", "1", phi.ErrFormat},
		{"padded", sealed + "=", "note", "1", phi.ErrFormat},
		{"line break", join("v2", "a", nonce, body+"\n"), "note", "1", phi.ErrFormat},
		{"line break inside", join("v2", "a", nonce[:4]+"\r\n"+nonce[4:], body), "note", "1", phi.ErrFormat},
		{"standard alphabet", join("v2", "a", nonce, "+/"+body[2:]), "note", "1", phi.ErrFormat},
		{"short nonce", join("v2", "a", nonce[:12], body), "note", "1", phi.ErrFormat},
		{"long nonce", join("v2", "a", nonce+"AAAA", body), "note", "1", phi.ErrFormat},
		{"tag only", join("v2", "a", nonce, "AAAAAAAAAAAAAAAAAAAAAA"), "note", "1", phi.ErrFormat},
		{"nothing sealed", join("v2", "a", nonce, ""), "note", "1", phi.ErrFormat},
		{"no purpose", sealed, "", "1", phi.ErrBinding},
		{"no row", sealed, "note", "", phi.ErrBinding},
		{"split purpose", sealed, "no|te", "1", phi.ErrBinding},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plain, err := r.Open(tc.sealed, tc.purpose, tc.row)
			if !errors.Is(err, tc.want) || plain != "" {
				t.Fatalf("opened %q with error %v, want %v", plain, err, tc.want)
			}
		})
	}
}

func TestSealRefusesAmbiguousBinding(t *testing.T) {
	r := ring(t, key("a", 1))
	for _, at := range [][2]string{{"", "1"}, {"note", ""}, {"note|1", "2"}} {
		for _, plain := range []string{"x", ""} {
			if sealed, err := r.Seal(plain, at[0], at[1]); !errors.Is(err, phi.ErrBinding) || sealed != "" {
				t.Errorf("Seal(%q) at %q gave %q, %v", plain, at, sealed, err)
			}
		}
	}
	// A row id may hold the separator: the purpose cannot, so the binding stays unambiguous.
	sealed := seal(t, r, "x", "note", "1|2")
	if _, err := r.Open(sealed, "note", "1|2"); err != nil {
		t.Fatal(err)
	}
}

func TestStrictEncoding(t *testing.T) {
	r := ring(t, key("a", 1))
	for _, plain := range []string{"a", "abc"} { // 17 and 19 bytes with the tag leave spare bits in the last character
		sealed := seal(t, r, plain, "note", "1")
		last := sealed[len(sealed)-1]
		for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") {
			if c == last {
				continue
			}
			if _, err := r.Open(sealed[:len(sealed)-1]+string(c), "note", "1"); err == nil {
				t.Fatalf("a second spelling of the same sealed value opened")
			}
		}
	}
}

func TestRotation(t *testing.T) {
	old, fresh := key("2025", 1), key("2026", 2)
	before := ring(t, old)
	sealed := seal(t, before, "Ada", "patient.first_name", "p1")

	during := ring(t, fresh, old)
	if during.PrimaryKeyID() != "2026" || !during.NeedsRotation(sealed) {
		t.Fatal("an old value must need rotation under the new first key")
	}
	plain, err := during.Open(sealed, "patient.first_name", "p1")
	if err != nil || plain != "Ada" {
		t.Fatalf("opened %q, %v", plain, err)
	}
	resealed := seal(t, during, plain, "patient.first_name", "p1")
	if id, ok := phi.KeyID(resealed); !ok || id != "2026" || during.NeedsRotation(resealed) {
		t.Fatalf("resealed under %q", id)
	}

	after := ring(t, fresh)
	if plain, err = after.Open(resealed, "patient.first_name", "p1"); err != nil || plain != "Ada" {
		t.Fatalf("opened %q, %v", plain, err)
	}
	if _, err = after.Open(sealed, "patient.first_name", "p1"); !errors.Is(err, phi.ErrUnknownKey) {
		t.Fatalf("want ErrUnknownKey, got %v", err)
	}
	for _, absent := range []string{"", "plain text"} {
		if after.NeedsRotation(absent) {
			t.Errorf("%q needs no rotation", absent)
		}
	}
}

func TestNewKeyRingRefuses(t *testing.T) {
	for name, keys := range map[string][]phi.Key{
		"no key":    {},
		"no id":     {key("", 1)},
		"colon":     {key("a:b", 1)},
		"comma":     {key("a,b", 1)},
		"long id":   {key(strings.Repeat("k", 33), 1)},
		"same id":   {key("a", 1), key("a", 2)},
		"later key": {key("a", 1), key("b c", 2)},
	} {
		if _, err := phi.NewKeyRing(keys...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	r := ring(t, key("a", 1), key("b", 2))
	rapid.Check(t, func(t *rapid.T) {
		plain := string(rapid.SliceOf(rapid.Byte()).Draw(t, "plain"))
		purpose := rapid.StringMatching(`[a-z_.]{1,20}`).Draw(t, "purpose")
		row := rapid.StringN(1, 40, -1).Draw(t, "row")
		sealed, err := r.Seal(plain, purpose, row)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Open(sealed, purpose, row)
		if err != nil || got != plain {
			t.Fatalf("got %q, %v", got, err)
		}
		if plain == "" {
			return
		}
		if _, err := r.Open(sealed, purpose, row+"x"); !errors.Is(err, phi.ErrAuthentication) {
			t.Fatalf("other row: %v", err)
		}
		if _, err := r.Open(sealed, purpose+"x", row); !errors.Is(err, phi.ErrAuthentication) {
			t.Fatalf("other purpose: %v", err)
		}
	})
}

// FuzzOpen checks that Open neither panics nor quotes its input, and opens only sealed values.
func FuzzOpen(f *testing.F) {
	r := ring(f, key("k-1", 7), key("a", 1))
	for _, seed := range []string{
		known, known[:len(known)-3], known + "A", knownPadded, knownPadded[:len(knownPadded)-3], knownPadded + "A", "", "v1:", "v1:::", "v1:a::", "v1:a:AAAAAAAAAAAAAAAA:AA",
		"v1:a:AAAAAAAAAAAAAAAA:AAAAAAAAAAAAAAAAAAAAAAAA", "v1:zz:AAAA:AAAA", "\xff\xfe:v1", "v1:a:\n:\n",
		"v2:", "v2:::", "v2:a::", "v2:a:AAAAAAAAAAAAAAAA:AAAAAAAAAAAAAAAAAAAAAAAA", "v1" + knownPadded[2:], "v2" + known[2:],
	} {
		f.Add(seed, "patient.first_name", "p1")
	}
	padded := sealedAs(f, "v2", "\x80\x80", "v2|patient.first_name|p1")        // the padding byte as text
	for _, plain := range []string{"Ada", "Ada\x00", "\x80", "\x00\x00\x00"} { // authentic, but with invalid padding
		f.Add(sealedAs(f, "v2", plain, "v2|patient.first_name|p1"), "patient.first_name", "p1")
	}
	f.Add(padded, "patient.first_name", "p1")
	f.Add(known, "patient.first_name|p1", "")
	f.Add(knownPadded, "patient.first_name|p1", "")
	f.Fuzz(func(t *testing.T, text, purpose, row string) {
		plain, err := r.Open(text, purpose, row)
		switch {
		case err == nil && text == "":
		case err == nil:
			want := map[string]string{known: "Ada", knownPadded: "Ada", padded: "\x80"}[text]
			if want == "" || purpose != "patient.first_name" || row != "p1" || plain != want {
				t.Fatalf("a value that was never sealed opened")
			}
		case plain != "":
			t.Fatal("an error came with a value")
		case !isSentinel(err):
			t.Fatalf("error %v is not an error of the package and may quote its input", err)
		}
		phi.KeyID(text)
		r.NeedsRotation(text)
	})
}

func isSentinel(err error) bool {
	return slices.Contains([]error{phi.ErrFormat, phi.ErrUnknownKey, phi.ErrAuthentication, phi.ErrBinding}, err)
}

func BenchmarkSeal(b *testing.B) {
	r := ring(b, key("2026-01", 1))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Seal("Lovelace-Byron", "patient.last_name", "0197f5b0-6c1e-7c3a-9d0e-0123456789ab"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	r := ring(b, key("2026-01", 1))
	sealed := seal(b, r, "Lovelace-Byron", "patient.last_name", "0197f5b0-6c1e-7c3a-9d0e-0123456789ab")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Open(sealed, "patient.last_name", "0197f5b0-6c1e-7c3a-9d0e-0123456789ab"); err != nil {
			b.Fatal(err)
		}
	}
}
