package console

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
)

// The content codings, and the level of brotli at run time, while a client waits.
const (
	Brotli = "br"
	Gzip   = "gzip"
	Plain  = "identity"

	brotliLevel = 5
)

// File is a console file. Each coding is made once, on first use.
type File struct {
	Type   string
	sum    string
	bodies map[string]func() ([]byte, error)
}

// newFile returns a file from its content, or from its packed form if there is one.
func newFile(kind, sum string, content, packed []byte) *File {
	plain := sync.OnceValues(func() ([]byte, error) { return content, nil })
	small := sync.OnceValues(func() ([]byte, error) {
		return pack(content, func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, brotliLevel) })
	})
	if packed != nil {
		plain = sync.OnceValues(func() ([]byte, error) { return io.ReadAll(brotli.NewReader(bytes.NewReader(packed))) })
		small = func() ([]byte, error) { return packed, nil }
	}
	zipped := sync.OnceValues(func() ([]byte, error) {
		content, err := plain()
		if err != nil {
			return nil, err
		}
		return pack(content, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	})
	return &File{Type: kind, sum: sum, bodies: map[string]func() ([]byte, error){Plain: plain, Brotli: small, Gzip: zipped}}
}

func pack(content []byte, by func(io.Writer) io.WriteCloser) ([]byte, error) {
	var packed bytes.Buffer
	w := by(&packed)
	if _, err := w.Write(content); err != nil {
		return nil, fmt.Errorf("pack a file: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack a file: %w", err)
	}
	return packed.Bytes(), nil
}

// Encoded returns the file in a coding and the entity tag of that coding. Source: RFC 9110, section 8.8.3.3: each
// coding has its own.
func (f *File) Encoded(coding string) (body []byte, tag string, err error) {
	if body, err = f.bodies[coding](); err != nil {
		return nil, "", fmt.Errorf("encode a console file as %s: %w", coding, err)
	}
	return body, `"` + f.sum + "-" + coding + `"`, nil
}

// ChooseCoding returns the coding that Accept-Encoding prefers, on a tie the smallest, and identity if it names none.
// Source: RFC 9110, section 12.5.3.
func ChooseCoding(accepted []string) string {
	weights := map[string]float64{}
	for offer := range strings.SplitSeq(strings.ToLower(strings.Join(accepted, ",")), ",") {
		coding, rest, hasWeight := strings.Cut(offer, ";")
		weights[strings.TrimSpace(coding)] = 1
		if hasWeight {
			name, value, _ := strings.Cut(rest, "=")
			weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if strings.TrimSpace(name) != "q" || err != nil || weight < 0 {
				weight = 0 // a malformed weight counts as 0
			}
			weights[strings.TrimSpace(coding)] = weight
		}
	}
	if _, named := weights[Plain]; !named {
		weights[Plain] = 1e-4 // identity is acceptable unless rejected, after any named coding
	}
	best := Plain
	for _, coding := range []string{Gzip, Brotli} {
		weight, named := weights[coding]
		if !named {
			weight = weights["*"]
		}
		if weight > 0 && weight >= weights[best] {
			best = coding
		}
	}
	return best
}
