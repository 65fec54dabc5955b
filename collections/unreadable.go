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

// UnreadableCode is the contract's error code of [Unreadable].
const UnreadableCode = "record_unreadable"

// Unreadable says that a stored value cannot be opened. It names the record, and shows nothing of it.
type Unreadable struct{ Collection, ID string }

// Error names the record as people know it.
func (e *Unreadable) Error() string {
	return fmt.Sprintf("a stored value of %s %s cannot be opened", e.Collection, e.Name())
}

// Detail is the sentence for whoever asked: it names the record, and nothing that is in it.
func (e *Unreadable) Detail() string {
	return fmt.Sprintf("A stored value of %s %s cannot be opened; nothing was changed.", spoken(e.Collection), e.Name())
}

// spoken is what one record of a collection is called.
func spoken(collection string) string {
	name := strings.ReplaceAll(collection, "_", " ")
	if stem, ok := strings.CutSuffix(name, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(name, "s")
}

// Name is the record's id in the contract: a UUID, or a number without its zeros.
func (e *Unreadable) Name() string {
	if n := Number(e.ID); n != 0 {
		return fmt.Sprint(n)
	}
	return e.ID
}

// IsUnreadable reports whether err says that a stored value cannot be opened.
func IsUnreadable(err error) bool {
	_, is := errors.AsType[*Unreadable](err)
	return is
}

// UnreadableText stands for a text that cannot be opened where it is only part of what is shown, and the rest must not be held back for it: the name
// of a patient on the triage list, a message beside a reading.
const UnreadableText = "[unreadable]"

// TextOf is a sealed text of a record, or [UnreadableText].
func TextOf(record *core.Record, column string) string {
	if f, ok := record.Collection().Fields.GetByName(column).(*PHIField); ok {
		plain, err := f.open(record)
		if err == nil {
			return plain
		}
		_ = f.note(record) // the text says it
	}
	return UnreadableText
}

// ChangedColumns are the columns of a record that are no longer as they were stored, whether they can be opened or not.
func ChangedColumns(record *core.Record) (columns []string) {
	before := record.Original()
	for _, field := range record.Collection().Fields {
		name := field.GetName()
		was, is := fmt.Sprint(before.GetRaw(name)), fmt.Sprint(record.GetRaw(name))
		if f, sealed := field.(*PHIField); sealed {
			v := f.value(record)
			if v.refused {
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

// replaceSealed gives a record a new value in the place of one that may not be readable any more: of a second factor nobody misses the old one.
func replaceSealed(record *core.Record, column, plain string) {
	record.SetRaw(column, &phiValue{plain: plain})
}

// unreadable counts the openings that failed in this process.
var unreadable atomic.Uint64

// UnreadableValues is how often a stored value could not be opened since the process began.
func UnreadableValues() uint64 { return unreadable.Load() }

// told is who is told of records that cannot be read, and of which it was. It is global like the sealer, and for the same reason.
var told struct {
	sync.Mutex
	tell  func(collection, id string)
	names map[Unreadable]struct{}
}

// mostTold is how many records are named in one process. Where more are broken, the first will do.
const mostTold = 10_000

// OnUnreadable has tell called once for each record that turns out to hold a value that cannot be opened.
func OnUnreadable(tell func(collection, id string)) {
	told.Lock()
	defer told.Unlock()
	told.tell, told.names = tell, map[Unreadable]struct{}{}
}

// firstTime is whom to tell of a record; nil when there is nobody, or it was done.
func firstTime(record Unreadable) (tell func(collection, id string)) {
	told.Lock()
	defer told.Unlock()
	if _, done := told.names[record]; done || told.tell == nil || len(told.names) >= mostTold {
		return nil
	}
	told.names[record] = struct{}{}
	return told.tell
}

// noteUnreadable counts a value that could not be opened, and names its record.
func noteUnreadable(collection, id string) error {
	unreadable.Add(1)
	record := Unreadable{collection, id}
	if tell := firstTime(record); tell != nil {
		tell(collection, id)
	}
	return &record
}

// note is noteUnreadable for the value of a record in memory, which is counted once however often it is asked for.
func (f *PHIField) note(record *core.Record) error {
	if f.value(record).noted.Swap(true) {
		return &Unreadable{record.Collection().Name, record.Id}
	}
	return noteUnreadable(record.Collection().Name, record.Id)
}

// Readable fails with [Unreadable] when a sealed value of a stored record cannot be opened. Whoever shows, sends or saves a record asks this
// first: the getters know no errors, and "" must never stand for a value that is there.
func Readable(record *core.Record) error {
	for _, f := range SealedFields(record.Collection()) {
		if _, err := f.open(record); err != nil {
			return f.note(record)
		}
	}
	return nil
}

// UnreadableColumns are the sealed columns of a record that cannot be opened.
func UnreadableColumns(record *core.Record) (columns []string) {
	for _, f := range SealedFields(record.Collection()) {
		if _, err := f.open(record); err != nil {
			columns = append(columns, f.Name)
		}
	}
	return columns
}

// ReadableOnly parts records that can be read whole from the number of those that cannot: a list leaves these out and says how many.
func ReadableOnly[R interface{ ProxyRecord() *core.Record }](records []R) (whole []R, left int) {
	return readable(records, R.ProxyRecord)
}

// ReadableRecords is ReadableOnly for records without a type of their own.
func ReadableRecords(records []*core.Record) (whole []*core.Record, left int) {
	return readable(records, func(r *core.Record) *core.Record { return r })
}

func readable[R any](records []R, recordOf func(R) *core.Record) (whole []R, left int) {
	whole = slices.DeleteFunc(append([]R{}, records...), func(r R) bool { return Readable(recordOf(r)) != nil })
	return whole, len(records) - len(whole)
}
