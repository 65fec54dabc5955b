// Vigil is a remote-patient-monitoring backend for clinical practices: one binary, one data folder.
package main

import (
	"embed"
	"io/fs"
	"os"

	"github.com/vigilhealth/vigil/cmd"
)

// version is set when the binary is built.
var version = "development"

//go:embed pb_public
var files embed.FS

func main() {
	pages, err := fs.Sub(files, "pb_public")
	if err != nil {
		panic(err) // a folder that is embedded is there
	}
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	program := &cmd.Program{Version: version, Pages: pages, Environ: os.Environ(), Self: self}
	os.Exit(program.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
