package hapi

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Options are how a server runs.
type Options struct {
	Address string // to listen on
	Base    string // what it takes for its own address; "" is the true one
	// Database is a file, without the endings that H2 gives to its own.
	Database string
	// Strict hands every commit to the file at once, and refuses what does not validate. Otherwise both are as HAPI and H2 come.
	Strict bool
	JVM    []string // options of Java's own
}

// Server is a process on a database in a file.
type Server struct {
	URL     string // of its FHIR interface
	command *exec.Cmd
	ended   chan struct{}
	failed  error        // how it ended
	said    bytes.Buffer // to be read after that
}

// Start runs a server. The process ends with this one, however this one ends.
func (k Kit) Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{URL: "http://" + o.Address + "/fhir", ended: make(chan struct{})}
	if o.Base == "" {
		o.Base = s.URL
	}
	s.command = exec.CommandContext(ctx, "java", append(o.JVM, "-cp", k.classPath, "Hapi", o.Address, o.Base, o.Database)...)
	if o.Strict {
		s.command.Args = append(s.command.Args, "strict")
	}
	s.command.Stdout, s.command.Stderr = &s.said, &s.said
	if _, err := s.command.StdinPipe(); err != nil { // nothing is written: its end is what the server waits for
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.failed = s.command.Wait()
		close(s.ended)
	}()
	return s, nil
}

// Await asks for a path over and over until it is answered with 200.
func (s *Server) Await(ctx context.Context, path string) error {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.ended:
			return fmt.Errorf("HAPI ended: %w\n%s", s.failed, &s.said)
		case <-ctx.Done():
			return fmt.Errorf("HAPI does not answer: %w", context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// PID is the number of the process.
func (s *Server) PID() int { return s.command.Process.Pid }

// Kill ends it as a power cut would.
func (s *Server) Kill() { s.end(os.Kill) }

// Stop lets it close its database.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// end waits for the end; what has ended already stays as it is.
func (s *Server) end(by os.Signal) {
	_ = s.command.Process.Signal(by) // it may be gone already
	<-s.ended
}
