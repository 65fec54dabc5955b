// Command icd10 packs the tabular list of ICD-10-CM, as the CDC publishes it (icd10c-tabular-….xml), for package icd10:
//
//	go run -C tools/icd10 . icd10c-tabular-April-1-2026.xml ../../internal/icd10/data/codes.gz
//
// docs/billing.md names the download address of the file.
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: icd10 TABULAR.xml OUTPUT.gz")
	}
	source, err := os.Open(args[0]) //nolint:gosec // the developer names the file
	if err != nil {
		return fmt.Errorf("open the tabular list: %w", err)
	}
	defer func() { _ = source.Close() }() // read-only
	var list tabular
	if err := xml.NewDecoder(source).Decode(&list); err != nil { //nolint:gosec // the developer trusts the file
		return fmt.Errorf("read the tabular list: %w", err)
	}
	codes := list.codes()
	packed, err := pack(codes)
	if err != nil {
		return err
	}
	if err := os.WriteFile(args[1], packed, 0o644); err != nil { //nolint:gosec // a file of the repository
		return fmt.Errorf("write the packed codes: %w", err)
	}
	valid := 0
	for _, c := range codes {
		if c.billable {
			valid++
		}
	}
	_, err = fmt.Fprintf(out, "ICD-10-CM %s: %d codes, %d of them billable, %d bytes packed\n", list.Version, len(codes), valid, len(packed))
	return err
}

// tabular is the published list.
type tabular struct {
	Version string `xml:"version"`
	Diags   []diag `xml:"chapter>section>diag"`
}

type diag struct {
	Name       string      `xml:"name"`
	Desc       string      `xml:"desc"`
	Includes   []string    `xml:"includes>note"`
	Terms      []string    `xml:"inclusionTerm>note"`
	Extensions []extension `xml:"sevenChrDef>extension"`
	Diags      []diag      `xml:"diag"`
}

type extension struct {
	Char string `xml:"char,attr"`
	Text string `xml:",chardata"`
}

// code is one code of the set, without its dot.
type code struct {
	bare     string
	billable bool
	texts    []string // the description first
}

func (t tabular) codes() (list []code) {
	for _, d := range t.Diags {
		list = append(list, d.codes(nil)...)
	}
	slices.SortFunc(list, func(a, b code) int { return cmp.Compare(a.bare, b.bare) })
	return list
}

// codes returns the codes of a diagnosis and of its subdivisions. A code without subdivisions is billable. Where a seventh
// character is required, which also applies to all subdivisions, the code is billable only with it, padded with X to six
// characters.
// Source: ICD-10-CM Official Guidelines for Coding and Reporting FY 2026, I.A.4, I.A.5 and I.B.2.
func (d diag) codes(extensions []extension) (list []code) {
	if len(d.Extensions) > 0 {
		extensions = d.Extensions
	}
	bare := strings.ReplaceAll(strings.TrimSpace(d.Name), ".", "")
	leaf := len(d.Diags) == 0
	texts := []string{clean(d.Desc)}
	for _, note := range append(slices.Clone(d.Includes), d.Terms...) {
		texts = append(texts, clean(note))
	}
	list = append(list, code{bare, leaf && len(extensions) == 0, texts})
	if leaf {
		stem := bare + strings.Repeat("X", max(0, 6-len(bare)))
		for _, x := range extensions {
			if !diedOfIt(stem, x.Char) {
				list = append(list, code{stem + x.Char, true, []string{texts[0] + ", " + clean(x.Text)}})
			}
		}
	}
	for _, finer := range d.Diags {
		list = append(list, finer.codes(extensions)...)
	}
	return list
}

// diedOfIt reports an exception noted under S06: a patient who died before regaining consciousness has no subsequent encounter
// and no sequela.
func diedOfIt(stem, char string) bool {
	return strings.HasPrefix(stem, "S06") && (stem[5] == '7' || stem[5] == '8') && (char == "D" || char == "S")
}

func clean(text string) string { return strings.Join(strings.Fields(text), " ") }

// pack returns the format that package icd10 reads. Frequent words get small numbers.
func pack(codes []code) ([]byte, error) {
	count := map[string]int{}
	for _, c := range codes {
		for _, text := range c.texts {
			for _, word := range strings.Fields(text) {
				count[word]++
			}
		}
	}
	words := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	number := make(map[string]uint64, len(words))
	for i, word := range words {
		number[word] = uint64(i + 1)
	}
	var set, texts []byte
	for _, c := range codes {
		valid := byte('-')
		if c.billable {
			valid = 'b'
		}
		set = append(fmt.Appendf(set, "%-7s", c.bare), valid)
		for _, text := range c.texts {
			for _, word := range strings.Fields(text) {
				texts = binary.AppendUvarint(texts, number[word])
			}
			texts = append(texts, 0)
		}
		texts = append(texts, 0)
	}
	raw := []byte("vigil-icd10-1\n")
	for _, part := range [][]byte{[]byte(strings.Join(words, "\n")), set, texts} {
		raw = append(binary.AppendUvarint(raw, uint64(len(part))), part...)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	_, err = z.Write(raw)
	if err := errors.Join(err, z.Close()); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return packed.Bytes(), nil
}
