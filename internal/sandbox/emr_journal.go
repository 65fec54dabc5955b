package sandbox

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// journal keeps stored observations, one JSON line each, in a file only its owner may read.
type journal struct{ file *os.File }

type journalLine struct {
	ReceivedAt time.Time       `json:"received_at"`
	Resource   json.RawMessage `json:"resource"`
}

// append writes one line; without a journal it does nothing.
func (j *journal) append(line journalLine) error {
	if j == nil {
		return nil
	}
	raw, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode a journal line: %w", err)
	}
	if _, err := j.file.Write(append(raw, '\n')); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// openJournal reads back what an earlier sandbox stored. A last line cut short by a kill is cut off: its
// observation was never answered, so its sender will send it again.
func (e *EMR) openJournal(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	whole, err := e.replay(bufio.NewReader(file))
	if err == nil {
		err = file.Truncate(whole)
	}
	if err == nil {
		_, err = file.Seek(whole, io.SeekStart)
	}
	if err != nil {
		_ = file.Close() // the first error is the one that tells
		return fmt.Errorf("read the journal: %w", err)
	}
	e.journal = &journal{file}
	return nil
}

// replay keeps every whole line and returns how many bytes they take.
func (e *EMR) replay(lines *bufio.Reader) (int64, error) {
	var whole int64
	for {
		raw, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return whole, nil
		}
		if err != nil {
			return 0, err
		}
		whole += int64(len(raw))
		var line journalLine
		var observation struct {
			ID string `json:"id"`
			incoming
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			return 0, err
		}
		if err := json.Unmarshal(line.Resource, &observation); err != nil {
			return 0, err
		}
		if refused := observation.check(); refused != nil {
			return 0, fmt.Errorf("line holds no observation: %s", refused.diagnostics)
		}
		e.keep(observation.ID, observation.incoming, line.Resource, line.ReceivedAt)
	}
}
