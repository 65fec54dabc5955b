// Command dex runs the identity provider Dex as `dex serve FILE` does, with the settings that the tests and
// docs/three-practices.md use. Dex's own program needs a module that is not published in a matching version.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/server/authflow"
	"github.com/dexidp/dex/server/signer"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/dexidp/dex/web"
	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"
)

// settings is Dex's configuration file. Other settings are refused, because they would have no effect here.
type settings struct {
	Issuer  string `json:"issuer"`
	Storage struct {
		Type string `json:"type"`
	} `json:"storage"`
	Web struct {
		HTTP string `json:"http"`
	} `json:"web"`
	OAuth2 struct {
		SkipApprovalScreen bool `json:"skipApprovalScreen"`
	} `json:"oauth2"`
	EnablePasswordDB bool                `json:"enablePasswordDB"`
	Passwords        []password          `json:"staticPasswords"`
	Clients          []storage.Client    `json:"staticClients"`
	Connectors       []storage.Connector `json:"connectors"`
}

// password is a local user of Dex, with the hash as text.
type password struct {
	Email    string   `json:"email"`
	Username string   `json:"username"`
	Name     string   `json:"name"`
	UserID   string   `json:"userID"`
	Groups   []string `json:"groups"`
	Hash     string   `json:"hash"`
}

// local is Dex's name for the connector of its local users.
const local = "local"

func main() {
	if len(os.Args) != 3 || os.Args[1] != "serve" {
		log.Fatal("dex serve FILE")
	}
	s, err := read(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	store := stored(s, quiet)
	keys, err := (&signer.LocalConfig{KeysRotationPeriod: "6h"}).Open(context.Background(), store, time.Hour, time.Now, quiet)
	if err != nil {
		log.Fatal(err)
	}
	dex, err := server.NewServer(context.Background(), server.Config{
		Issuer: s.Issuer, Storage: store, SkipApprovalScreen: s.OAuth2.SkipApprovalScreen, Signer: keys, Logger: quiet, Web: server.WebConfig{WebFS: web.FS()},
		PKCE: authflow.PKCEConfig{Enforce: true, CodeChallengeMethodsSupported: []string{"S256"}}, PrometheusRegistry: prometheus.NewRegistry(),
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(s.Web.HTTP, dex))
}

// read parses the file as Dex does, whose settings have JSON names.
func read(name string) (s settings, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return s, err
	}
	var members map[string]any
	if err := yaml.Unmarshal(text, &members); err != nil {
		return s, err
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return s, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return s, decoder.Decode(&s)
}

// stored holds the file's clients, users and connectors.
func stored(s settings, quiet *slog.Logger) storage.Storage {
	store := storage.WithStaticClients(memory.New(quiet), s.Clients)
	var people []storage.Password
	for _, one := range s.Passwords {
		people = append(people, storage.Password{
			Email: one.Email, Username: one.Username, Name: one.Name, UserID: one.UserID, Groups: one.Groups, Hash: []byte(one.Hash),
		})
	}
	store = storage.WithStaticPasswords(store, people, quiet)
	if s.EnablePasswordDB {
		s.Connectors = append(s.Connectors, storage.Connector{ID: local, Type: local, Name: "Email"})
	}
	return storage.WithStaticConnectors(store, s.Connectors)
}
