// Command wordlint counts words that docs/glossary.md and the rules for prose in CONTRIBUTING.md do not allow: indefinite actors, private or
// translated idiom, and everyday verbs where the field has its own.
//
//	go run -C tools/wordlint . ../..
//
// Comments of Go files, tests included, may have at most 3 such lines per 1,000 comment lines, because a quoted source may need one. Messages, file
// names, docs and the console have none. Text in backquotes and fixed wire strings are not read.
package main

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxPerThousand is the most comment lines per 1,000 that may have a listed word. It only goes down.
const maxPerThousand = 3

// listed are the words, each with what to write instead.
var listed = []struct{ pattern, instead string }{
	{`anew`, "again"},
	{`whoever|somebody|anybody|nobody|everybody`, "a named actor: the clinician, the caller, the worker"},
	{`whatever|whichever`, "any, each"},
	{`whose|whom`, "the noun that owns it"},
	{`by itself|by themselves`, "automatically, alone"},
	{`in vain`, "without success"},
	{`meanwhile`, "in the meantime, or nothing"},
	{`tells?|told|telling`, "notify, report, return"},
	{`becomes? of|became of`, "the result, the state"},
	{`goes on|go on|going on`, "continues"},
	{`borne`, "corroborated"},
	{`hears?|heard`, "receive, be notified"},
	{`asks?|asked|asking`, "request, query, prompt, require"},
	{`says?|said|saying`, "state, report, return, show"},
	{`knows?|knew`, "have, store, define"},
	{`forgets?|forgot|forgotten`, "evict, discard, clear"},
	{`takes? back|taken back|took back`, "retract, withdraw, revert"},
	{`settles?|settled`, "resolve, close"},
	{`of late|by now`, "recently, already, until"},
	{`thereof|likewise`, "of it, also"},
}

var (
	anyListed = compile()
	inCode    = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|\\]\\([^)]*\\)|https?://\\S+")
	jsString  = regexp.MustCompile("//[^\n]*|/\\*(?s:.*?)\\*/|\"(?:[^\"\\\\\n]|\\\\.)*\"|>\\s*[A-Z][^<>{}$\n]*")
	sql       = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|AND|OR|WHERE|FROM|CASE|PRAGMA) `)
)

func compile() *regexp.Regexp {
	var all []string
	for _, l := range listed {
		all = append(all, l.pattern)
	}
	return regexp.MustCompile(`(?i)\b(` + strings.Join(all, "|") + `)\b`)
}

// finding is one listed word at one place.
type finding struct {
	file string
	line int
	word string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %q", f.file, f.line, f.word) }

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	files, err := tracked(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var comments, others []finding
	lines := 0
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // deleted in the work tree
		}
		others = append(others, find(name, 1, strings.NewReplacer("_", " ", "/", " ", "-", " ").Replace(name))...)
		switch {
		case strings.HasSuffix(name, ".go"):
			n, inComments, inMessages := goFile(name, text)
			lines += n
			comments, others = append(comments, inComments...), append(others, inMessages...)
		case strings.HasSuffix(name, ".md"):
			others = append(others, markdown(name, text)...)
		case strings.HasPrefix(name, "pb_public/app/") && strings.HasSuffix(name, ".js"):
			others = append(others, javaScript(name, text)...)
		}
	}
	os.Exit(report(comments, others, lines))
}

// report prints the findings that break a rule and returns the exit status.
func report(comments, others []finding, lines int) int {
	status := 0
	if len(comments)*1000 > maxPerThousand*lines {
		status = 1
		for _, f := range comments {
			fmt.Println(f)
		}
	}
	for _, f := range others {
		status = 1
		fmt.Println(f)
	}
	fmt.Printf("%d of %d comment lines have a listed word (%.1f per 1,000, at most %d); %d elsewhere, where none is allowed\n",
		len(comments), lines, float64(len(comments))*1000/float64(max(1, lines)), maxPerThousand, len(others))
	if status != 0 {
		for _, l := range listed {
			fmt.Printf("  %-50s %s\n", l.pattern, l.instead)
		}
	}
	return status
}

// tracked lists the files of the repository. This tool has the words in it and is left out.
func tracked(root string) ([]string, error) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	names := strings.Split(strings.Trim(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "tools/wordlint/") || strings.Contains(name, "/testdata/") || name == "LICENSE" ||
			strings.HasPrefix(name, "cmd/licenses/") || strings.HasPrefix(name, "docs/screens/")
	}), nil
}

// find returns the listed words of a text that starts at a line, one finding per line.
// prescribed is a text that the interface fixes word by word: the title of a push.
const prescribed = "nobody has taken it"

func find(file string, line int, text string) (found []finding) {
	for i, row := range strings.Split(text, "\n") {
		if word := anyListed.FindString(strings.ReplaceAll(row, prescribed, "")); word != "" {
			found = append(found, finding{file, line + i, word})
		}
	}
	return found
}

// goFile returns the number of comment lines, and the findings in comments and in messages. A message is a string of more than one word outside
// tests that is not SQL.
func goFile(name string, text []byte) (lines int, comments, messages []finding) {
	files := token.NewFileSet()
	file := files.AddFile(name, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	isTest := strings.HasSuffix(name, "_test.go")
	for {
		pos, kind, literal := s.Scan()
		switch kind {
		case token.EOF:
			return lines, comments, messages
		case token.COMMENT:
			lines += 1 + strings.Count(literal, "\n")
			comments = append(comments, find(name, file.Line(pos), inCode.ReplaceAllString(literal, ""))...)
		case token.STRING:
			if !isTest && strings.Contains(literal, " ") && !sql.MatchString(strings.Trim(literal, "\"`")) {
				messages = append(messages, find(name, file.Line(pos), literal)...)
			}
		}
	}
}

// markdown returns the findings outside code and links.
func markdown(name string, text []byte) []finding {
	return find(name, 1, string(inCode.ReplaceAllFunc(text, blank)))
}

// javaScript returns the findings in comments, strings and the text of templates.
func javaScript(name string, text []byte) (found []finding) {
	for _, at := range jsString.FindAllIndex(text, -1) {
		if part := text[at[0]:at[1]]; bytes.Contains(part, []byte(" ")) {
			found = append(found, find(name, 1+bytes.Count(text[:at[0]], []byte("\n")), string(part))...)
		}
	}
	return found
}

// blank keeps the line breaks of a text, so that later lines keep their numbers.
func blank(text []byte) []byte { return bytes.Repeat([]byte("\n"), bytes.Count(text, []byte("\n"))) }
