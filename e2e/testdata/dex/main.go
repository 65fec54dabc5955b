// Vigil is signed in to with a real identity provider: Dex with one client, and its connector that lets in the person whom Dex is tested with, of
// the group "authors".
package main

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/server/authflow"
	"github.com/dexidp/dex/server/signer"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/dexidp/dex/web"
	"github.com/prometheus/client_golang/prometheus"
)

func main() {
	addr := flag.String("addr", "", "address to listen on")
	back := flag.String("redirect", "", "address that the client comes back to")
	flag.Parse()
	quiet := slog.New(slog.DiscardHandler)
	store := memory.New(quiet)
	store = storage.WithStaticClients(store, []storage.Client{{ID: "vigil", Secret: "secret of the test", Name: "Vigil", RedirectURIs: []string{*back}}})
	store = storage.WithStaticConnectors(store, []storage.Connector{{ID: "mock", Type: "mockCallback", Name: "Example"}})
	keys, err := (&signer.LocalConfig{KeysRotationPeriod: "6h"}).Open(context.Background(), store, time.Hour, time.Now, quiet)
	if err != nil {
		log.Fatal(err)
	}
	dex, err := server.NewServer(context.Background(), server.Config{
		Issuer: "http://" + *addr + "/dex", Storage: store, SkipApprovalScreen: true, Signer: keys, Logger: quiet, Web: server.WebConfig{WebFS: web.FS()},
		PKCE: authflow.PKCEConfig{Enforce: true, CodeChallengeMethodsSupported: []string{"S256"}}, PrometheusRegistry: prometheus.NewRegistry(),
	})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, dex))
}
