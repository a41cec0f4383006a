package wire

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// A Term is something that both ends of a connection must agree upon: see [Protocol].
type Term struct {
	is   string // what it is, up to its verb
	body []byte // as a hello has it
	show func(*Reader) string
}

// Text is a term that is a text: "its NAME is …".
func Text(name, value string) Term {
	var w Writer
	w.Text(value)
	return Term{name + " is", w.Bytes, func(r *Reader) string { return strconv.Quote(r.Text(maxHello)) }}
}

// List is a term that is several texts, in an order that both ends give them: "its NAME
// are …".
func List(name string, values []string) Term {
	var w Writer
	w.Number(uint64(len(values)))
	for _, v := range values {
		w.Text(v)
	}
	return Term{name + " are", w.Bytes, func(r *Reader) string {
		all := []string{}
		for range r.Count(maxHello) {
			if r.failed {
				break
			}
			all = append(all, r.Text(maxID))
		}
		return strconv.Quote(strings.Join(all, ","))
	}}
}

// Span is a term that is a span of time.
func Span(name string, value time.Duration) Term {
	var w Writer
	w.Span(value)
	return Term{name + " is", w.Bytes, func(r *Reader) string { return r.Span(math.MaxInt64).String() }}
}

// Number is a term that is a number, which people read with a unit behind it.
func Number(name string, value int, unit string) Term {
	var w Writer
	w.Number(uint64(value))
	return Term{name + " is", w.Bytes, func(r *Reader) string { return strconv.Itoa(r.Count(math.MaxInt32)) + unit }}
}

func (t Term) String() string { return t.show(NewReader(t.body)) }
