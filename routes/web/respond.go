package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
)

const JSONType = "application/json"

// OK answers 200 with a value that encodes as the contract shows it.
func (c *Call) OK(value any) error { return c.JSON(http.StatusOK, value) }

// Answer is OK with what a function gave, or the error that it gave instead.
func (c *Call) Answer(value any, err error) error {
	if err != nil {
		return err
	}
	return c.OK(value)
}

// Created answers 201.
func (c *Call) Created(value any) error { return c.JSON(http.StatusCreated, value) }

// Done answers 204 when nothing went wrong.
func (c *Call) Done(err error) error {
	if err != nil {
		return err
	}
	c.response.WriteHeader(http.StatusNoContent)
	return nil
}

// JSON answers with a status of its own; errors are returned, not answered.
func (c *Call) JSON(status int, value any) error {
	body, err := Encode(value)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	return c.Send(status, JSONType, body)
}

// Attach answers 200 with a file to save, such as a CSV export.
func (c *Call) Attach(contentType, filename string, body []byte) error {
	c.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": filename}))
	return c.Send(http.StatusOK, contentType, body)
}

// Send answers with a finished body.
func (c *Call) Send(status int, contentType string, body []byte) error {
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

// Encode writes JSON without HTML escapes: answers are never HTML, and a name may hold "&".
func Encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}
