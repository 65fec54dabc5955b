package routes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
)

const jsonType = "application/json"

// ok answers 200 with a value that encodes as the contract shows it.
func (c *call) ok(value any) error { return c.json(http.StatusOK, value) }

// created answers 201.
func (c *call) created(value any) error { return c.json(http.StatusCreated, value) }

// noContent answers 204.
func (c *call) noContent() error {
	c.response.WriteHeader(http.StatusNoContent)
	return nil
}

// json answers with a status of its own; errors are returned, not answered.
func (c *call) json(status int, value any) error {
	body, err := encode(value)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	return c.send(status, jsonType, body)
}

// attach answers 200 with a file to save, such as a CSV export.
func (c *call) attach(contentType, filename string, body []byte) error {
	c.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": filename}))
	return c.send(http.StatusOK, contentType, body)
}

// send answers with a finished body.
func (c *call) send(status int, contentType string, body []byte) error {
	h := c.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.response.WriteHeader(status)
	if c.Request.Method == http.MethodHead {
		return nil
	}
	if _, err := c.response.Write(body); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// encode writes JSON without HTML escapes: answers are never HTML, and a name may hold "&".
func encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}
