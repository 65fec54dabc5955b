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

// Options configure a server.
type Options struct {
	Address string // to listen on
	Base    string // the server's own address; "" for the real one
	// Database is a file, without H2's own extensions.
	Database string
	// Strict writes every commit to the file at once, and rejects invalid resources. Otherwise HAPI and H2 have their
	// defaults.
	Strict bool
	JVM    []string // options of the JVM
}

// Server is a process with a database in a file.
type Server struct {
	URL     string // of its FHIR base
	command *exec.Cmd
	ended   chan struct{}
	failed  error        // exit error
	said    bytes.Buffer // output, to be read after the end
}

// Start runs a server. The process ends with this one, in any case.
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
	if _, err := s.command.StdinPipe(); err != nil { // nothing is written: the server ends at end of file
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

// Await requests a path repeatedly until it is answered 200.
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

// PID returns the process id.
func (s *Server) PID() int { return s.command.Process.Pid }

// Kill ends the process without a shutdown, like a power cut.
func (s *Server) Kill() { s.end(os.Kill) }

// Stop lets the server close its database.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// end waits for the end of the process, if it still runs.
func (s *Server) end(by os.Signal) {
	_ = s.command.Process.Signal(by) // fails when the process has already exited
	<-s.ended
}
