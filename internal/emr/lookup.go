package emr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// maxLookupPages bounds the pages of a search for one observation.
const maxLookupPages = 50

// lookup is a search for one observation.
type lookup struct {
	sought
	once          bool // without quick retries
	isRecovered   bool // an earlier process may have sent it
	mustBeCurrent bool // "not found" must be certain
	mayDiffer     bool // the reading was corrected since it may have been sent
}

// FindObservation searches for an Observation after an unknown outcome and before it is sent again: by its identifier, else by its patient,
// category and time. Unless the EMR itself prevents duplicates "not found" must be certain, and an EMR that cannot be searched is an error with
// NeedsPerson. The error is always an *Error. Source: docs/decisions/transmissions.md, "Look-ups".
func (c *Client) FindObservation(ctx context.Context, observationID string, resource []byte) (emrID string, found bool, err error) {
	return c.findUnlessSafe(ctx, lookup{sought: readSought(observationID, resource), isRecovered: true})
}

// LookUpObservation is FindObservation for callers that need a certain answer in any case, such as for a reading that was corrected since it was
// sent. Its copy differs then, so a search by content can find it, and cannot show that there is none.
func (c *Client) LookUpObservation(ctx context.Context, observationID string, resource []byte) (emrID string, found bool, err error) {
	return c.find(ctx, lookup{sought: readSought(observationID, resource), isRecovered: true, mustBeCurrent: true, mayDiffer: true})
}

// findUnlessSafe searches; where the EMR itself prevents duplicates, an EMR that cannot be searched counts as not found.
func (c *Client) findUnlessSafe(ctx context.Context, l lookup) (emrID string, found bool, err error) {
	isSafe := c.preventsDuplicates()
	l.mustBeCurrent = !isSafe
	emrID, found, err = c.find(ctx, l)
	if e, failed := errors.AsType[*Error](err); failed && e.NeedsPerson && isSafe {
		return "", false, nil
	}
	return emrID, found, err
}

// find searches by identifier where the EMR may have that search, else by content.
func (c *Client) find(ctx context.Context, l lookup) (emrID string, found bool, err error) {
	offer := c.capabilities.current().Offer
	unanswered := noLookUp(&Error{})
	if offer.searchesBy("identifier") {
		emrID, err = c.searchCopy(ctx, l, byIdentifier(l, offer))
		e, failed := errors.AsType[*Error](err)
		if !failed || !e.NeedsPerson || e.Status == http.StatusForbidden { // a missing scope forbids every search
			return emrID, emrID != "", err
		}
		unanswered = e
	}
	if l.query == "" || offer != nil && !offer.Search {
		return "", false, unanswered
	}
	emrID, err = c.searchCopy(ctx, l, byContent(l, c.copies))
	if err == nil && emrID == "" && l.mayDiffer {
		return "", false, noLookUp(&Error{})
	}
	return emrID, emrID != "", err
}

// uncached makes the EMR answer from its data and not from its cache.
// Source: RFC 9111, section 5.2.1.4; HAPI FHIR documentation, "Search Result Caching".
var uncached = http.Header{"Cache-Control": {"no-cache"}}

// copySearch is one way to search for a copy.
type copySearch struct {
	key, query   string // key is that of the search cache
	resourceType string // "" for Observations
	isCopy       func(foundObservation) (bool, error)
	// isNear reports a result that may be the copy: then "not found" is no answer.
	isNear func(foundObservation) (bool, error)
	// isForeign reports a result that shows that the EMR ignored a parameter.
	isForeign func(foundObservation) bool
	// parameter must be in the address that the EMR states to have answered; "" where it declares it.
	parameter string
}

func byIdentifier(l lookup, offer *Offer) copySearch {
	s := copySearch{
		key: l.id, query: url.Values{"identifier": {identifierSystem + "|" + identifierPrefix + l.id}}.Encode(),
		isCopy:    func(r foundObservation) (bool, error) { return l.hasIdentifier(r), nil },
		isNear:    func(foundObservation) (bool, error) { return false, nil },
		isForeign: func(foundObservation) bool { return true }, // any other result is one too many
	}
	if offer == nil {
		s.parameter = "identifier"
	}
	return s
}

func byContent(l lookup, copies *copyOwners) copySearch {
	return copySearch{
		key: l.query, query: l.query, isForeign: l.isOutside, parameter: "date",
		isCopy: func(r foundObservation) (bool, error) {
			if !l.matches(r, l.mayDiffer) {
				return false, nil
			}
			return copies.assign(r.ID, l.sought)
		},
		isNear: func(r foundObservation) (bool, error) {
			if !l.resembles(r) {
				return false, nil
			}
			return copies.isFree(r.ID, l.sought)
		},
	}
}

// read returns the id of the first copy in a page's results; "" without. isNear reports one that may be it.
func (s copySearch) read(results []foundObservation) (emrID string, isNear bool, err error) {
	for _, r := range results {
		isCopy, err := s.isCopy(r)
		if isCopy {
			return r.ID, false, nil
		}
		isThisNear := false
		if err == nil {
			isThisNear, err = s.isNear(r)
		}
		if err != nil {
			return "", false, &Error{Code: CodeUnavailable, Message: "The copies at the EMR could not be compared", Ambiguous: true, cause: err}
		}
		isNear = isNear || isThisNear
	}
	return "", isNear, nil
}

// searchCopy reads all pages of a search and returns the id of the first copy; "" if the EMR ran
// the query and has none. A response to another query and a rejected search are errors with
// NeedsPerson.
func (c *Client) searchCopy(ctx context.Context, l lookup, s copySearch) (emrID string, err error) {
	staleUntil, began := c.searches.staleUntil(s.key, l.isRecovered), c.transport.now()
	isStale, address, hasNear := began.Before(staleUntil), c.baseURL+"/"+cmp.Or(s.resourceType, "Observation")+"?"+s.query, false
	for range maxLookupPages {
		got, attempts, err := c.send(ctx, call{
			method: http.MethodGet, address: address, requestID: uuid.NewString(), maxBody: maxBundle, header: uncached, once: l.once,
		})
		c.searches.recordSearch(s.key, isStale, c.transport.now())
		if e, failed := errors.AsType[*Error](err); failed {
			return "", answerOf(e)
		}
		page, ok := readFoundPage(got.body, cmp.Or(s.resourceType, "Observation"))
		if !ok && len(got.body) == maxBundle {
			break
		}
		if !ok {
			return "", invalidSuccess(got, attempts)
		}
		emrID, isNear, err := s.read(page.observations)
		if emrID != "" || err != nil {
			return emrID, err
		}
		hasNear = hasNear || isNear
		switch {
		case page.hasIgnored(cmp.Or(s.resourceType, "Observation"), s.parameter) || slices.ContainsFunc(page.observations, s.isForeign):
			return "", noLookUp(&Error{})
		case page.next == "" && l.mustBeCurrent && isStale:
			return "", searchOutdated(max(c.searches.cacheLife, staleUntil.Sub(c.transport.now())))
		case page.next == "" && hasNear:
			near := noLookUp(&Error{})
			near.isNear = true
			return "", near
		case page.next == "":
			return "", nil
		}
		if address, ok = sameOrigin(address, page.next); !ok {
			break
		}
	}
	return "", noLookUp(&Error{}) // pages that cannot be read may have it
}

// answerOf returns the error of a search: a refusal of the search itself is no look-up, everything else may succeed later.
func answerOf(e *Error) *Error {
	switch e.Status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		if !e.SignIn {
			return noLookUp(e)
		}
	}
	return e
}

// noLookUp is the error of a search that shows nothing: the EMR refused it (because), ignored a parameter, or offers none.
func noLookUp(because *Error) *Error {
	message := "EMR may have the observation and cannot be searched for it"
	if because.Status != 0 {
		message += fmt.Sprintf(" (%d)", because.Status)
	}
	return &Error{
		Code: CodeOutcomeUnknown, Status: because.Status, Message: message, Diagnostics: because.Diagnostics, Attempts: because.Attempts,
		Ambiguous: true, NeedsPerson: true,
	}
}

// copyOwners holds the observation that each of the EMR's copies belongs to, so that a search by content never takes one for two observations. It keeps those
// with a delivery that may not be stored yet; the others are in the database.
type copyOwners struct {
	stored func(patient, emrID string) (bool, error)

	mu     sync.Mutex
	owners map[string]string // observations by EMR id
	order  []string          // EMR ids, oldest first
}

// maxOwners is more than the deliveries that wait for their result to be stored.
const maxOwners = 4096

// record notes that a copy belongs to an observation.
func (o *copyOwners) record(emrID, observationID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(emrID, observationID)
}

func (o *copyOwners) add(emrID, observationID string) {
	if emrID == "" {
		return
	}
	if _, has := o.owners[emrID]; !has {
		o.order = append(o.order, emrID)
	}
	o.owners[emrID] = observationID
	if len(o.order) > maxOwners {
		delete(o.owners, o.order[0])
		o.order = o.order[1:]
	}
}

// assign gives a copy to an observation, unless it belongs to another.
func (o *copyOwners) assign(emrID string, by sought) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	isFree, err := o.mayHave(emrID, by)
	if isFree {
		o.add(emrID, by.id)
	}
	return isFree, err
}

// isFree reports whether a copy belongs to no other observation.
func (o *copyOwners) isFree(emrID string, by sought) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mayHave(emrID, by)
}

func (o *copyOwners) mayHave(emrID string, by sought) (bool, error) {
	if owner, has := o.owners[emrID]; has {
		return owner == by.id, nil
	}
	if o.stored == nil {
		return true, nil
	}
	has, err := o.stored(by.patient, emrID)
	return !has && err == nil, err
}
