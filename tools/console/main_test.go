package main

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
)

func TestSqueeze(t *testing.T) {
	for given, want := range map[string]string{
		"html`\n  <p\n    class=x\n    title=\"a\n  b\">\n    One\n    two ${\" \"}\n  <b>${x}</b> ${y}\n</p>`": "html`<p class=x title=\"a\n  b\">One\n    two ${\" \"}<b>${x}<//> ${y}<//>`",
		"html`<p>${a&&html`\n  <i>x</i>\n`}\n</p>`":                                                             "html`<p>${a&&html`<i>x<//>`}<//>`",
		"x=`a\n  b${`\n  c`}`;html`\n`":                                                                         "x=`a\n  b${`\n  c`}`;html``",
		"a.replace(/[`/]\\/`/g,\"`\")+b/c;html`\n`":                                                             "a.replace(/[`/]\\/`/g,\"`\")+b/c;html``",
		"xhtml`\n `;o.html`\n `":                                                                                "xhtml`\n `;o.html`\n `",
		"html`<${A}>\n<i>x</i>\n</${A}></${A.b}>`":                                                              "html`<${A}><i>x<//><//><//>`",
		"html`<p a=${{b:1}}\n  c>${()=>{return{d:\"}\"}}}\n</p>`":                                               "html`<p a=${{b:1}} c>${()=>{return{d:\"}\"}}}<//>`",
		"html`<!-- a\n  b --><p>\n</p>`":                                                                        "html`<!-- a\n  b --><p>\n</p>`",
		"html`<p>\n\u00a0\u00a0a \\n ${b}\u2009\n c\n</p>`;c=`${d}\n  e`":                                       "html`<p>a \\n ${b} c<//>`;c=`${d}\n  e`",
	} {
		if strings.Contains(given, "\u2009") {
			want = "html`<p>a \\n ${b}c<//>`;c=`${d}\n  e`"
		}
		if got := squeeze(given); got != want {
			t.Errorf("%q\nis squeezed to %q\nwant    %q", given, got, want)
		}
	}
}

// htm returns the same elements for every template of the console before and after packing.
func TestPackedTemplatesSayTheSame(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat("node_modules/typescript"); err != nil {
		t.Skip("the console's tools are not installed: run make web")
	}
	console := os.DirFS("../../pb_public/app")
	var pairs [][3]string
	err = fs.WalkDir(console, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".js" {
			return err
		}
		source, err := fs.ReadFile(console, name)
		if err != nil {
			return err
		}
		packed, err := pack("app/"+name, source)
		if err != nil {
			return err
		}
		plain, err := io.ReadAll(brotli.NewReader(bytes.NewReader(packed)))
		pairs = append(pairs, [3]string{name, string(source), string(plain)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(pairs)
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), node, "templates.mjs")
	check.Dir, check.Stdin = ".", bytes.NewReader(input)
	out, err := check.CombinedOutput()
	if err != nil || !regexp.MustCompile(`^[0-9]{3,} templates\n$`).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
}
