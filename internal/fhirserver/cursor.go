package fhirserver

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// PageParam is the only query parameter of a next-page URL. It holds the sealed search and position, so that names from a search body do not appear in
// a URL.
const PageParam = "_page"

// cursor is the content of a page parameter.
type cursor struct {
	Type  string `json:"t"`
	Query string `json:"q"`
	Value string `json:"v"`
	ID    string `json:"i"`
}

// cursorPurpose is bound into the sealed cursor.
const cursorPurpose = "fhir.page"

// maxQueryLength bounds the parameters of a search with further pages, since the next-page URL has to hold them.
const maxQueryLength = 4 << 10

// NextPage returns the value of PageParam for the page after a position.
func NextPage(k *ResourceType, understood url.Values, last Position) (string, error) {
	query := understood.Encode()
	if len(query) > maxQueryLength {
		return "", fault.New(fault.Invalid, CodeTooLong, "There are more pages, and the parameters are too long for a page URL. Shorten the search, or raise _count.")
	}
	plain, err := json.Marshal(cursor{k.Type, query, last.Value, last.ID})
	if err != nil {
		return "", err
	}
	sealed, err := collections.Seal(string(plain), cursorPurpose, k.Type)
	return strings.ReplaceAll(sealed, ":", "~"), err // a tilde needs no escaping in a URL
}

// OpenPage returns the search and the position in a value of PageParam.
func OpenPage(k *ResourceType, text string) (url.Values, Position, error) {
	plain, err := collections.Open(strings.ReplaceAll(text, "~", ":"), cursorPurpose, k.Type)
	if err != nil {
		return nil, Position{}, invalidPage()
	}
	var c cursor
	if err := json.Unmarshal([]byte(plain), &c); err != nil || c.Type != k.Type || c.ID == "" {
		return nil, Position{}, invalidPage()
	}
	params, err := url.ParseQuery(c.Query)
	if err != nil {
		return nil, Position{}, invalidPage()
	}
	return params, Position{c.Value, c.ID}, nil
}

func invalidPage() error {
	return fault.Field(PageParam, "This is not a page of this search. Search again.")
}
