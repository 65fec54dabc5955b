package web

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// streamChunk is the size of one write of a stream.
	streamChunk = 64 << 10
	// stallTimeout ends a stream if the client reads nothing for this long.
	stallTimeout = time.Minute
)

// Stream answers 200 with a stream of any length. After the first part an error closes the connection, so that the
// client detects the incomplete answer.
func (c *Call) Stream(contentType string, from io.Reader) error {
	c.Header().Set("Content-Type", contentType)
	c.response.WriteHeader(http.StatusOK)
	if c.Request.Method == http.MethodHead {
		return nil
	}
	control := http.NewResponseController(c.response)
	chunk := make([]byte, streamChunk)
	for {
		n, failed := io.ReadFull(from, chunk)
		_ = control.SetWriteDeadline(time.Now().Add(stallTimeout)) // not every test's connection has one
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

// AcceptsGzip reports whether the caller accepts gzip. Source: RFC 9110, section 12.5.3.
func (c *Call) AcceptsGzip() bool {
	for _, offer := range strings.Split(strings.Join(c.Request.Header.Values("Accept-Encoding"), ","), ",") {
		coding, quality, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(offer), " ", ""), ";")
		if coding == "gzip" && strings.TrimRight(quality, "0.") != "q=" {
			return true
		}
	}
	return false
}
