// Package natsserver runs NATS servers with JetStream in this process, for tests. In production they are processes of their own, one in each
// zone; see docs/scaling.md.
package natsserver

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// patience bounds the start of a cluster on a busy machine.
const patience = 60 * time.Second

// Options configure the servers.
type Options struct {
	// Dir has the servers' files, one folder each.
	Dir string
	// Size is the number of servers; a cluster if more than one.
	Size int
	// Users may connect; empty for everyone.
	Users []*server.User
	// MaxPayload is the size of the largest message; 0 for the server's default, 1 MiB.
	MaxPayload int32
}

// Servers are running servers.
type Servers struct {
	options Options
	ports   []int // of the clients, then of the routes
	running []*server.Server
}

// Start starts the servers and returns when they are ready.
func Start(o Options) (*Servers, error) {
	s := &Servers{options: o, running: make([]*server.Server, o.Size)}
	var err error
	if s.ports, err = freePorts(2 * o.Size); err != nil {
		return nil, err
	}
	for n := range o.Size {
		if err := s.Run(n); err != nil {
			s.Stop()
			return nil, err
		}
	}
	if err := s.await(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Run starts a server that was stopped.
func (s *Servers) Run(n int) error {
	options := &server.Options{
		ServerName: fmt.Sprintf("nats-%d", n), Host: "127.0.0.1", Port: s.ports[n], NoSigs: true, NoLog: true, JetStream: true,
		StoreDir: filepath.Join(s.options.Dir, fmt.Sprintf("nats-%d", n)), SyncAlways: true, Users: s.options.Users, MaxPayload: s.options.MaxPayload,
	}
	if size := s.options.Size; size > 1 {
		options.Cluster = server.ClusterOpts{Name: "vigil", Host: "127.0.0.1", Port: s.ports[size+n]}
		for _, port := range s.ports[size:] {
			options.Routes = append(options.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)})
		}
	}
	started, err := server.NewServer(options)
	if err != nil {
		return fmt.Errorf("configure the NATS server: %w", err)
	}
	started.Start()
	if !started.ReadyForConnections(patience) {
		return errors.New("the NATS server does not accept connections")
	}
	s.running[n] = started
	return nil
}

// await returns when the servers have elected a leader.
func (s *Servers) await() error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) { //nolint:forbidigo // waits for a process, not for the practice's clock
		for _, running := range s.running {
			if s.options.Size == 1 || running.JetStreamIsLeader() {
				return nil
			}
		}
	}
	return errors.New("the NATS servers have elected no leader")
}

// URLs returns the addresses for clients, comma separated.
func (s *Servers) URLs() string {
	urls := make([]string, s.options.Size)
	for n := range urls {
		urls[n] = fmt.Sprintf("nats://127.0.0.1:%d", s.ports[n])
	}
	return strings.Join(urls, ",")
}

// StopOne stops a server, as a failed machine would.
func (s *Servers) StopOne(n int) {
	if s.running[n] != nil {
		s.running[n].Shutdown()
		s.running[n].WaitForShutdown()
		s.running[n] = nil
	}
}

// Stop stops all servers.
func (s *Servers) Stop() {
	for n := range s.running {
		s.StopOne(n)
	}
}

// freePorts returns ports without a listener.
func freePorts(count int) (ports []int, err error) {
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a port: %w", err)
		}
		defer listener.Close() //nolint:errcheck // it was only opened to reserve a port
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
