package web

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// streamed is how much of a stream is sent at once.
	streamed = 64 << 10
	// stalled is how long a caller may take none of it before nothing more is sent.
	stalled = time.Minute
)

// Stream answers 200 with what is read, of any length. Once a part is sent, what goes wrong ends the connection: nobody takes a part for the whole.
func (c *Call) Stream(contentType string, from io.Reader) error {
	c.Header().Set("Content-Type", contentType)
	c.response.WriteHeader(http.StatusOK)
	if c.Request.Method == http.MethodHead {
		return nil
	}
	control := http.NewResponseController(c.response)
	chunk := make([]byte, streamed)
	for {
		n, failed := io.ReadFull(from, chunk)
		_ = control.SetWriteDeadline(time.Now().Add(stalled)) // not every test's connection has one
		if _, err := c.response.Write(chunk[:n]); err != nil {
			return fmt.Errorf("writing the answer: %w", err)
		}
		switch failed {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return nil
		default:
			panic(http.ErrAbortHandler)
		}
	}
}

// TakesPacked reports whether the caller takes an answer that is packed by gzip. Source: RFC 9110, section 12.5.3.
func (c *Call) TakesPacked() bool {
	for _, said := range strings.Split(strings.Join(c.Request.Header.Values("Accept-Encoding"), ","), ",") {
		coding, quality, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(said), " ", ""), ";")
		if coding == "gzip" && strings.TrimRight(quality, "0.") != "q=" {
			return true
		}
	}
	return false
}
