// Package licenses contains the licenses of everything in the program, with the texts that must be distributed with it. `make licenses` collects
// them; byhand lists the parts that no tool finds.
package licenses

import (
	"bytes"
	"embed"
	"encoding/csv"
	"fmt"
	"io"
	"strings"
)

// Source: docs/decisions/building.md, "Licenses".
//
//go:embed components.csv texts
var files embed.FS

// Component is a part of the shipped program.
type Component struct {
	Kind    string // vigil, go, std, npm, part, data, or compiler: code that the release compiler adds to Linux programs
	Name    string
	Version string
	License string   // an SPDX expression
	Within  string   // the component that contains it, if any
	Texts   []string // names of its license texts
}

// Components returns all components, Vigil first.
func Components() ([]Component, error) {
	list, err := files.ReadFile("components.csv")
	if err != nil {
		return nil, fmt.Errorf("read the components: %w", err)
	}
	rows, err := csv.NewReader(bytes.NewReader(list)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the components: %w", err)
	}
	var own, others []Component
	for _, row := range rows[1:] {
		c := Component{row[0], row[1], row[2], row[3], row[4], strings.Fields(row[5])}
		if c.Kind == "vigil" {
			own = append(own, c)
		} else {
			others = append(others, c)
		}
	}
	return append(own, others...), nil
}

// Text returns a license, notice or statement verbatim.
func Text(name string) ([]byte, error) {
	text, err := files.ReadFile("texts/" + name + ".txt")
	if err != nil {
		return nil, fmt.Errorf("read a license: %w", err)
	}
	return text, nil
}

// WriteList writes one line per component.
func WriteList(out io.Writer) error {
	all, err := Components()
	if err != nil {
		return err
	}
	for _, c := range all {
		if _, err := fmt.Fprintln(out, c); err != nil {
			return err
		}
	}
	return nil
}

// String returns the component's name, version and license.
func (c Component) String() string {
	line := strings.TrimSpace(c.Name+" "+c.Version) + ": " + c.License
	if c.Within != "" {
		line += " (in " + c.Within + ")"
	}
	return line
}

// Write writes the list and then each text once, below the names of its components.
func Write(out io.Writer) error {
	if err := WriteList(out); err != nil {
		return err
	}
	all, err := Components()
	if err != nil {
		return err
	}
	var order []string
	of := map[string][]string{}
	for _, c := range all {
		for _, text := range c.Texts {
			if of[text] == nil {
				order = append(order, text)
			}
			of[text] = append(of[text], strings.TrimSpace(c.Name+" "+c.Version))
		}
	}
	line := strings.Repeat("=", 80)
	for _, name := range order {
		text, err := Text(name)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "\n%s\n%s\n%s\n\n%s\n", line, strings.Join(of[name], "\n"), line, bytes.TrimRight(text, "\r\n")); err != nil {
			return err
		}
	}
	return nil
}
