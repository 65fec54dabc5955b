package collections

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pocketbase/pocketbase/core"
)

// UnreadableCode is the API error code of [UnreadableError].
const UnreadableCode = "record_unreadable"

// UnreadableError reports that a stored value cannot be opened. It names the record and none of its content.
type UnreadableError struct{ Collection, ID string }

// Error names the record by its public id.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("a stored value of %s %s cannot be opened", e.Collection, e.Name())
}

// Detail is the sentence for the caller. It names the record and none of its content.
func (e *UnreadableError) Detail() string {
	return fmt.Sprintf("A stored value of %s %s cannot be opened; nothing was changed.", singularName(e.Collection), e.Name())
}

// singularName returns the name of one record of a collection, such as "billing entry".
func singularName(collection string) string {
	name := strings.ReplaceAll(collection, "_", " ")
	if stem, ok := strings.CutSuffix(name, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(name, "s")
}

// Name is the public id of the record: a UUID, or a number without leading zeros.
func (e *UnreadableError) Name() string {
	if n := Number(e.ID); n != 0 {
		return fmt.Sprint(n)
	}
	return e.ID
}

// IsUnreadable reports whether err means that a stored value cannot be opened.
func IsUnreadable(err error) bool {
	_, is := errors.AsType[*UnreadableError](err)
	return is
}

// UnreadableText replaces a text that cannot be opened and is only part of a view, such as a patient's name on the triage list, so the rest is
// still shown.
const UnreadableText = "[unreadable]"

// TextOf returns a sealed text of a record, or [UnreadableText].
func TextOf(record *core.Record, column string) string {
	if f, ok := record.Collection().Fields.GetByName(column).(*PHIField); ok {
		plain, err := f.open(record)
		if err == nil {
			return plain
		}
		_ = f.reportUnreadable(record) // the returned text reports it
	}
	return UnreadableText
}

// ChangedColumns lists the columns of a record that differ from the stored row, readable or not.
func ChangedColumns(record *core.Record) (columns []string) {
	before := record.Original()
	for _, field := range record.Collection().Fields {
		name := field.GetName()
		was, is := fmt.Sprint(before.GetRaw(name)), fmt.Sprint(record.GetRaw(name))
		if f, sealed := field.(*PHIField); sealed {
			v := f.value(record)
			if v.rejected {
				columns = append(columns, name)
				continue
			}
			was, is = f.value(before).sealed+f.value(before).plain, v.sealed+v.plain
		}
		if was != is {
			columns = append(columns, name)
		}
	}
	return columns
}

// replaceSealed sets a sealed value without reading the old one, which may be unreadable. It is for second factors: their old values are not
// needed.
func replaceSealed(record *core.Record, column, plain string) {
	record.SetRaw(column, &phiValue{plain: plain})
}

// unreadable counts the failed openings in this process.
var unreadable atomic.Uint64

// UnreadableValues returns how often a stored value could not be opened in this process.
func UnreadableValues() uint64 { return unreadable.Load() }

// unreadableNotifier holds the callback for unreadable records and the records already reported. It is a process-wide variable for the same
// reason as sealer: fields get no app.
var unreadableNotifier struct {
	sync.Mutex
	notify   func(collection, id string)
	reported map[UnreadableError]struct{}
}

// maxReportedRecords bounds the records reported in one process. If more are broken, the first ones are enough.
const maxReportedRecords = 10_000

// OnUnreadable sets a callback that runs once for each record with a value that cannot be opened.
func OnUnreadable(notify func(collection, id string)) {
	unreadableNotifier.Lock()
	defer unreadableNotifier.Unlock()
	unreadableNotifier.notify, unreadableNotifier.reported = notify, map[UnreadableError]struct{}{}
}

// firstReport returns the callback for a record, or nil if there is none or the record was already reported.
func firstReport(record UnreadableError) (notify func(collection, id string)) {
	unreadableNotifier.Lock()
	defer unreadableNotifier.Unlock()
	if _, done := unreadableNotifier.reported[record]; done || unreadableNotifier.notify == nil || len(unreadableNotifier.reported) >= maxReportedRecords {
		return nil
	}
	unreadableNotifier.reported[record] = struct{}{}
	return unreadableNotifier.notify
}

// reportUnreadable counts a value that could not be opened and reports its record.
func reportUnreadable(collection, id string) error {
	unreadable.Add(1)
	record := UnreadableError{collection, id}
	if notify := firstReport(record); notify != nil {
		notify(collection, id)
	}
	return &record
}

// reportUnreadable reports the value of a record in memory. It counts the value once, no matter how often it is read.
func (f *PHIField) reportUnreadable(record *core.Record) error {
	if f.value(record).reported.Swap(true) {
		return &UnreadableError{record.Collection().Name, record.Id}
	}
	return reportUnreadable(record.Collection().Name, record.Id)
}

// Readable returns [UnreadableError] if a sealed value of a stored record cannot be opened. Callers check it before they show, send or save a
// record: getters return no error, and "" must never replace an existing value.
func Readable(record *core.Record) error {
	for _, f := range SealedFields(record.Collection()) {
		if _, err := f.open(record); err != nil {
			return f.reportUnreadable(record)
		}
	}
	return nil
}

// UnreadableColumns lists the sealed columns of a record that cannot be opened.
func UnreadableColumns(record *core.Record) (columns []string) {
	for _, f := range SealedFields(record.Collection()) {
		if _, err := f.open(record); err != nil {
			columns = append(columns, f.Name)
		}
	}
	return columns
}

// ReadableOnly returns the records that can be fully read and the number of the others, which a list omits and reports.
func ReadableOnly[R interface{ ProxyRecord() *core.Record }](records []R) (whole []R, left int) {
	return readable(records, R.ProxyRecord)
}

// ReadableRecords is ReadableOnly for plain records.
func ReadableRecords(records []*core.Record) (whole []*core.Record, left int) {
	return readable(records, func(r *core.Record) *core.Record { return r })
}

func readable[R any](records []R, recordOf func(R) *core.Record) (whole []R, left int) {
	whole = slices.DeleteFunc(append([]R{}, records...), func(r R) bool { return Readable(recordOf(r)) != nil })
	return whole, len(records) - len(whole)
}
