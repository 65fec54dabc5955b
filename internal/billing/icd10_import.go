package billing

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/validate"
)

// The CMS order file of ICD-10-CM has fixed columns: order number 1-5, code without its dot 7-13, column 15 is 1 for a billable code and 0 for a
// header, short description 17-76, long description from 78.
const (
	codeFrom, codeTo = 6, 13
	validAt          = 14
	longFrom         = 77
	importBatch      = 2000
)

// ImportICD10 stores every billable code of a CMS order file as the list of a fiscal year; existing codes get the new descriptions. Importing again
// changes nothing. With year 0 the codes belong to no list. progress receives the number of bytes read.
func ImportICD10(app core.App, file io.Reader, year int, progress func(bytes int)) (stored int, err error) {
	lines := bufio.NewScanner(file)
	var batch []collections.ICD10Code
	var all []string
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := app.RunInTransaction(func(tx core.App) error { return collections.StoreICD10(tx, batch) })
		stored += len(batch)
		batch = batch[:0]
		return err
	}
	for read, number := 0, 1; lines.Scan(); number++ {
		line := lines.Text()
		read += len(line) + 1
		code, ok, err := parseOrderLine(line)
		if err != nil {
			return stored, fmt.Errorf("line %d: %w", number, err)
		}
		if !ok {
			continue
		}
		all = append(all, code.Code)
		if batch = append(batch, code); len(batch) == importBatch {
			if err := flush(); err != nil {
				return stored, err
			}
			progress(read)
		}
	}
	if err := lines.Err(); err != nil {
		return stored, fmt.Errorf("read the order file: %w", err)
	}
	if err := flush(); err != nil {
		return stored, err
	}
	if stored == 0 {
		return 0, errors.New("the file contains no codes: is it the CMS order file (icd10cm-order-YYYY.txt)?")
	}
	if year > 0 {
		err = collections.MarkICD10List(app, all, year)
	}
	return stored, err
}

// parseOrderLine parses a line; false for headers and empty lines.
func parseOrderLine(line string) (code collections.ICD10Code, ok bool, err error) {
	line = strings.TrimRight(line, "\r ")
	if line == "" {
		return code, false, nil
	}
	if len(line) <= longFrom || line[validAt] != '0' && line[validAt] != '1' {
		return code, false, errors.New("is not a line of a CMS order file")
	}
	bare := strings.TrimSpace(line[codeFrom:codeTo])
	code.Code = dotted(bare)
	if !validate.ValidICD10(code.Code) {
		return code, false, nil // not accepted in entries, such as codes for special purposes (U)
	}
	code.Description, code.Category = strings.ToValidUTF8(strings.TrimSpace(line[longFrom:]), ""), categoryLabel(bare)
	return code, line[validAt] == '1', nil
}

// dotted puts the dot behind the category, as codes are written.
func dotted(code string) string {
	if len(code) <= 3 {
		return code
	}
	return code[:3] + "." + code[3:]
}

// categoryRanges are labels for ranges of categories: by block where monitoring needs it, otherwise by chapter of ICD-10-CM.
var categoryRanges = []struct{ from, to, label string }{
	{"E08", "E13", "Diabetes mellitus"},
	{"E65", "E68", "Overweight, obesity and other hyperalimentation"},
	{"I10", "I1A", "Hypertensive diseases"},
	{"I20", "I25", "Ischemic heart diseases"},
	{"I26", "I28", "Pulmonary heart disease and diseases of pulmonary circulation"},
	{"I30", "I5A", "Other forms of heart disease"},
	{"J40", "J4A", "Chronic lower respiratory diseases"},
	{"N17", "N19", "Acute kidney failure and chronic kidney disease"},
	{"A00", "B99", "Certain infectious and parasitic diseases"},
	{"C00", "D49", "Neoplasms"},
	{"D50", "D89", "Diseases of the blood and blood-forming organs and certain disorders involving the immune mechanism"},
	{"E00", "E89", "Endocrine, nutritional and metabolic diseases"},
	{"F01", "F99", "Mental, behavioral and neurodevelopmental disorders"},
	{"G00", "G99", "Diseases of the nervous system"},
	{"H00", "H59", "Diseases of the eye and adnexa"},
	{"H60", "H95", "Diseases of the ear and mastoid process"},
	{"I00", "I99", "Diseases of the circulatory system"},
	{"J00", "J99", "Diseases of the respiratory system"},
	{"K00", "K95", "Diseases of the digestive system"},
	{"L00", "L99", "Diseases of the skin and subcutaneous tissue"},
	{"M00", "M99", "Diseases of the musculoskeletal system and connective tissue"},
	{"N00", "N99", "Diseases of the genitourinary system"},
	{"O00", "O9A", "Pregnancy, childbirth and the puerperium"},
	{"P00", "P96", "Certain conditions originating in the perinatal period"},
	{"Q00", "Q99", "Congenital malformations, deformations and chromosomal abnormalities"},
	{"R00", "R99", "Symptoms, signs and abnormal clinical and laboratory findings, not elsewhere classified"},
	{"S00", "T88", "Injury, poisoning and certain other consequences of external causes"},
	{"U00", "U85", "Codes for special purposes"},
	{"V00", "Y99", "External causes of morbidity"},
	{"Z00", "Z99", "Factors influencing health status and contact with health services"},
}

func categoryLabel(code string) string {
	category := code[:min(3, len(code))]
	for _, b := range categoryRanges {
		if b.from <= category && category <= b.to {
			return b.label
		}
	}
	return ""
}
