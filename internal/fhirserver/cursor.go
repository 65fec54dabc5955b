package fhirserver

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// PageParam is the one parameter of the address of a next page. What was asked for and where the page begins is sealed in it: names that somebody
// searched for in a body do not come to stand in an address.
const PageParam = "_page"

// cursor is what a next page needs to know.
type cursor struct {
	Type  string `json:"t"`
	Query string `json:"q"`
	Value string `json:"v"`
	ID    string `json:"i"`
}

// cursorPurpose is bound into what is sealed.
const cursorPurpose = "fhir.page"

// mostAsked is how long parameters may be that lead to a next page, whose address has to hold them.
const mostAsked = 4 << 10

// NextPage is the value of the parameter for the page after a position.
func NextPage(k *Kind, understood url.Values, last Position) (string, error) {
	query := understood.Encode()
	if len(query) > mostAsked {
		return "", fault.New(fault.Invalid, CodeTooLong, "There are more pages, and the parameters are too long for their addresses. Ask for less, or for more on a page by _count.")
	}
	plain, err := json.Marshal(cursor{k.Type, query, last.Value, last.ID})
	if err != nil {
		return "", err
	}
	sealed, err := collections.Seal(string(plain), cursorPurpose, k.Type)
	return strings.ReplaceAll(sealed, ":", "~"), err // which stands in an address as it is
}

// OpenPage reads the value: what was asked for, and where to go on.
func OpenPage(k *Kind, text string) (url.Values, Position, error) {
	plain, err := collections.Open(strings.ReplaceAll(text, "~", ":"), cursorPurpose, k.Type)
	if err != nil {
		return nil, Position{}, badPage()
	}
	var c cursor
	if err := json.Unmarshal([]byte(plain), &c); err != nil || c.Type != k.Type || c.ID == "" {
		return nil, Position{}, badPage()
	}
	params, err := url.ParseQuery(c.Query)
	if err != nil {
		return nil, Position{}, badPage()
	}
	return params, Position{c.Value, c.ID}, nil
}

func badPage() error {
	return fault.Field(PageParam, "This is no page of this search. Search anew.")
}
