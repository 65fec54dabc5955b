package vigiltest

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
	"regexp"
	"strings"
	"unicode/utf16"
)

// PDFText returns the number of pages of a PDF of this service, and its text, word by word in drawing order.
func PDFText(raw []byte) (pages int, text string) {
	var words strings.Builder
	for _, stream := range regexp.MustCompile(`(?s)stream\r?\n(.*?)\r?\nendstream`).FindAllSubmatch(raw, -1) {
		inflated, err := zlib.NewReader(bytes.NewReader(stream[1]))
		if err != nil {
			continue // a font or a map
		}
		content, _ := io.ReadAll(inflated)
		for _, shown := range regexp.MustCompile(`(?s)\(((?:\\.|[^\\)])*)\) ?Tj`).FindAllSubmatch(content, -1) {
			words.WriteString(utf16Text(shown[1]) + "\n")
		}
	}
	return bytes.Count(raw, []byte("/Type /Page\n")), words.String()
}

// utf16Text decodes a PDF string of two-byte characters.
func utf16Text(escaped []byte) string {
	var plain []byte
	for i := 0; i < len(escaped); i++ {
		if escaped[i] == '\\' && i+1 < len(escaped) {
			i++
			if at := bytes.IndexByte([]byte("nrtbf"), escaped[i]); at >= 0 {
				plain = append(plain, "\n\r\t\b\f"[at])
				continue
			}
		}
		plain = append(plain, escaped[i])
	}
	units := make([]uint16, len(plain)/2)
	for i := range units {
		units[i] = binary.BigEndian.Uint16(plain[2*i:])
	}
	return string(utf16.Decode(units))
}
