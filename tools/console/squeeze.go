package main

import (
	"regexp"
	"strings"
)

// The console writes its elements in htm templates. The squeezer removes what htm ignores: in text, whitespace with a line break
// at either end; in a tag, all but one space; the name in a closing tag. Source: htm 3.1.1, src/build.mjs.

const space = `[\s\v\pZ\x{feff}]` // as in JavaScript

var (
	breaks  = regexp.MustCompile(`^` + space + `*\n` + space + `*|` + space + `*\n` + space + `*$`)
	closing = regexp.MustCompile(`^/[\w-]+>`)
	ending  = regexp.MustCompile(`^\$\{[\w$.]+\}>`)
	between = regexp.MustCompile(`[ \t\r\n]*\n[ \t\r\n]*`)
	// A module may import htm's tag under a shorter name.
	renamed = regexp.MustCompile(`\bimport\{[^}]*\bhtml as ([\w$]+)`)
	// After these words a slash begins a regular expression; after others it divides.
	operator = regexp.MustCompile(`(?:^|[^\w$.])(?:return|typeof|case|in|of|void|delete|await|yield|else)$`)
)

// squeezer processes a script without comments.
type squeezer struct {
	rest string
	out  strings.Builder
	tag  *regexp.Regexp // matches the tag before an htm template
}

// squeeze removes from a script's templates what htm ignores.
func squeeze(script string) string {
	tag := "html"
	if found := renamed.FindStringSubmatch(script); found != nil {
		tag = found[1]
	}
	s := &squeezer{rest: script, tag: regexp.MustCompile(`(?:^|[^\w$.])` + regexp.QuoteMeta(tag) + `$`)}
	for s.rest != "" {
		s.code()
		s.take(min(1, len(s.rest))) // an unmatched brace, which valid scripts do not have
	}
	return s.out.String()
}

// take copies n bytes.
func (s *squeezer) take(n int) {
	s.out.WriteString(s.rest[:n])
	s.rest = s.rest[n:]
}

// code copies up to the brace that closes a template's expression, or to the end.
func (s *squeezer) code() {
	for depth := 0; s.rest != ""; {
		switch s.rest[0] {
		case '"', '\'':
			s.quoted(s.rest[:1])
			continue
		case '`':
			s.template()
			continue
		case '/':
			if s.atExpression() {
				s.expression()
				continue
			}
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return
			}
			depth--
		}
		s.take(1)
	}
}

// quoted copies a string.
func (s *squeezer) quoted(quote string) {
	n := 1
	for ; n < len(s.rest) && s.rest[n:n+1] != quote; n++ {
		if s.rest[n] == '\\' {
			n++
		}
	}
	s.take(min(n+1, len(s.rest)))
}

// atExpression reports whether a slash begins a regular expression.
func (s *squeezer) atExpression() bool {
	before := strings.TrimRight(s.out.String(), " \n")
	return before == "" || strings.ContainsAny(before[len(before)-1:], "(,=:[!&|?{;+-*%<>~^") || operator.MatchString(before[max(0, len(before)-12):])
}

// expression copies a regular expression. A slash inside a character class does not end it.
func (s *squeezer) expression() {
	n, class := 1, false
	for ; n < len(s.rest) && (class || s.rest[n] != '/'); n++ {
		switch s.rest[n] {
		case '\\':
			n++
		case '[':
			class = true
		case ']':
			class = false
		}
	}
	s.take(min(n+1, len(s.rest)))
}

// template copies a template, and squeezes it if it is one of htm's.
func (s *squeezer) template() {
	before := s.out.String()
	ours := s.tag.MatchString(before[max(0, len(before)-12):])
	s.take(1)
	var at parserState
	for s.rest != "" {
		n := 0
		for n < len(s.rest) && s.rest[n] != '`' && !strings.HasPrefix(s.rest[n:], "${") {
			if s.rest[n] == '\\' {
				n++
			}
			n++
		}
		text := s.rest[:n]
		s.rest = s.rest[n:]
		if ours {
			text = at.squeezed(text)
		}
		s.out.WriteString(text)
		if component := ending.FindString(s.rest); component != "" && strings.HasSuffix(text, "</") && at.tag {
			s.out.WriteString("/>")
			s.rest, at.tag = s.rest[len(component):], false
			continue
		}
		if !strings.HasPrefix(s.rest, "${") {
			s.take(min(1, len(s.rest)))
			return
		}
		s.take(2)
		s.code()
		s.take(min(1, len(s.rest)))
	}
}

// parserState is the parser state: in text, in a tag, or in a quoted value of a tag. Text after a comment is not changed.
type parserState struct {
	tag     bool
	quote   byte
	comment bool
}

// squeezed returns the squeezed text between two values of a template.
func (p *parserState) squeezed(text string) string {
	p.comment = p.comment || strings.Contains(text, "<!--")
	if p.comment {
		return text
	}
	var out strings.Builder
	for text != "" {
		n, done := len(text), func(piece string) string { return piece }
		switch {
		case p.quote != 0:
			if i := strings.IndexByte(text, p.quote); i >= 0 {
				n, p.quote = i+1, 0
			}
		case p.tag:
			done = func(piece string) string { return between.ReplaceAllString(piece, " ") }
			if i := strings.IndexAny(text, `"'>`); i >= 0 {
				n = i + 1
				if p.tag = text[i] != '>'; p.tag {
					p.quote = text[i]
				}
			}
		default:
			done = func(piece string) string {
				piece, open := strings.CutSuffix(piece, "<")
				piece = breaks.ReplaceAllString(piece, "")
				if open {
					piece += "<"
				}
				return piece
			}
			if i := strings.IndexByte(text, '<'); i >= 0 {
				n, p.tag = i+1, true
				text = text[:n] + closing.ReplaceAllString(text[n:], "//>")
			}
		}
		out.WriteString(done(text[:n]))
		text = text[n:]
	}
	return out.String()
}
