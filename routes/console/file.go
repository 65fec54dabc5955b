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

// The codings in which a file is sent, and how hard those of them try that are made while somebody waits.
const (
	Brotli = "br"
	Gzip   = "gzip"
	Plain  = "identity"

	brotliLevel = 5
)

// File is a file as it is sent. It is made once in each coding that somebody asks for.
type File struct {
	Type   string
	sum    string
	bodies map[string]func() ([]byte, error)
}

// newFile has content as it is, or what is packed in its place.
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

// As is the file in a coding, and the entity tag of that. Source: RFC 9110, section 8.8.3.3: each coding has its own.
func (f *File) As(coding string) (body []byte, tag string, err error) {
	if body, err = f.bodies[coding](); err != nil {
		return nil, "", fmt.Errorf("the console's file as %s: %w", coding, err)
	}
	return body, `"` + f.sum + "-" + coding + `"`, nil
}

// Choose is the coding that somebody likes best who says so; of those that are liked as much, the smallest. Who wants none gets the file as it is.
// Source: RFC 9110, section 12.5.3.
func Choose(accepted []string) string {
	liked := map[string]float64{}
	for said := range strings.SplitSeq(strings.ToLower(strings.Join(accepted, ",")), ",") {
		coding, rest, weighed := strings.Cut(said, ";")
		liked[strings.TrimSpace(coding)] = 1
		if weighed {
			name, value, _ := strings.Cut(rest, "=")
			weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if strings.TrimSpace(name) != "q" || err != nil || weight < 0 {
				weight = 0 // what cannot be read promises nothing
			}
			liked[strings.TrimSpace(coding)] = weight
		}
	}
	if _, named := liked[Plain]; !named {
		liked[Plain] = 1e-4 // it may always be sent unless it is refused; what is named goes first
	}
	best := Plain
	for _, coding := range []string{Gzip, Brotli} {
		weight, named := liked[coding]
		if !named {
			weight = liked["*"]
		}
		if weight > 0 && weight >= liked[best] {
			best = coding
		}
	}
	return best
}
