package stores

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A kind is one kind of store: how its URL is written, and what is known of it before
// it is open. Backend is what is known then.
type kind struct {
	name    string // and the scheme of its URLs
	secured string // the scheme with TLS, if it has one of its own
	alias   string // another for name, if there is one
	form    string // of a URL, for people
	params  []string
	help    [][2]string // forms of URLs, and what they are or have
	besides string      // what its URLs have that others have not, in lines for people
	parse   func(l *location) (opener, error)
	examine func(l *location) []Finding // what can be said before it is open; nil: nothing

	secrets []string // environment variables that hold them themselves: COMMAND does not get these
	instead string   // of a URL with a secret on the command line, for people
	others  string   // variables beside the secrets that its own tools read, for people

	unshared        string // why the demo's processes cannot share a URL, if they cannot
	releasable      bool   // another process can delete the record of one that was killed
	endsWithProcess bool   // the record of a process that was killed ends at once

	// A server's, else empty or nil.
	called    string // its name among people
	onlyHTTP2 bool   // it may answer questions of HTTP/1 with the settings of HTTP/2
	// answers recognises what is at an address by its reply to a request of HTTP, or
	// by what it asks next.
	answers func(ctx context.Context, addr string, reply []byte) bool

	// refuses tells whether an error is a refusal, as IsRefusal has it. Nil is never.
	refuses func(error) bool
}

// schemes returns those of its URLs.
func (k kind) schemes() []string {
	return slices.DeleteFunc([]string{k.name, k.secured, k.alias}, func(s string) bool { return s == "" })
}

func (k kind) address(name, rest string, getenv func(string) string) (*Address, error) {
	l, err := locate(rest)
	if err != nil {
		return nil, err
	}
	l.kind, l.tls, l.getenv = k, name == k.secured, getenv
	for param, values := range l.query {
		switch {
		case !slices.Contains(k.params, param):
			return nil, fmt.Errorf("unknown parameter %s", quoteName(param))
		case len(values) > 1:
			return nil, fmt.Errorf("parameter %q is given twice", param)
		case values[0] == "": // a variable that is not set, perhaps
			return nil, fmt.Errorf("parameter %q is empty: give it a value, or leave it out", param)
		}
	}
	open, err := k.parse(l)
	if err != nil {
		return nil, err
	}
	return &Address{shown: name + ":" + l.String(), where: l, open: open}, nil
}

// usage says how to write a URL of the kind.
func (k kind) usage() string {
	if len(k.params) == 0 {
		return k.form
	}
	return k.form + ", parameters " + strings.Join(k.params, " ")
}

// forms says how to write a URL of any kind.
func forms() string {
	texts, secured := []string{}, []string{}
	for _, k := range kinds() {
		form, _, _ := strings.Cut(k.form, " ")
		texts = append(texts, form)
		if k.secured != "" {
			secured = append(secured, k.secured)
		}
	}
	return strings.Join(texts, ", ") + " (TLS: " + strings.Join(secured, ", ") + ")"
}

// forPeople returns the kinds in the order in which people are told of them. Memory, which is for
// tests, is last.
func forPeople() []kind {
	all := kinds()
	return append(all[1:], all[0])
}

// Forms returns a line for each form of a URL.
func Forms() string {
	var b strings.Builder
	for _, k := range forPeople() {
		for _, line := range k.help {
			fmt.Fprintf(&b, "  %-44s %s\n", line[0], line[1])
		}
	}
	return b.String()
}

// Observed names the kinds in which observers can judge expiry.
func Observed() string {
	names := []string{}
	for _, k := range forPeople() {
		if slices.Contains(k.params, expiryParam) {
			names = append(names, k.name)
		}
	}
	return strings.Join(names, ", ")
}

// Besides returns what kinds have that others have not: a paragraph for each that has something.
func Besides() string {
	var b strings.Builder
	for _, k := range forPeople() {
		if k.besides == "" {
			continue
		}
		for line := range strings.SplitSeq(k.besides, "\n") {
			b.WriteString(strings.TrimRight("  "+line, " ") + "\n")
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Variables returns a line for each kind whose own tools have environment variables for secrets:
// those, and in parentheses the others.
func Variables() string {
	var b strings.Builder
	for _, k := range forPeople() {
		if len(k.secrets) == 0 {
			continue
		}
		fmt.Fprintf(&b, "    %-9s %s", k.name, strings.Join(k.secrets, ", "))
		if k.others != "" {
			fmt.Fprintf(&b, " (%s)", k.others)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Beginnings returns how URLs of all schemes begin.
func Beginnings() []string {
	all := []string{}
	for _, k := range kinds() {
		rest := strings.TrimPrefix(k.form, k.name)
		slashes := rest[:len(rest)-len(strings.TrimLeft(rest, ":/"))]
		for _, scheme := range k.schemes() {
			all = append(all, scheme+slashes)
		}
	}
	return all
}

// Unshared says why several processes cannot use the URL, or nothing if they can.
func (a *Address) Unshared() error {
	if why := a.where.kind.unshared; why != "" {
		return fmt.Errorf("store %s: %s", a.where.kind.name, why)
	}
	return nil
}

// Releasable reports whether another process can delete the record of one that was
// killed. Else the record ends at its TTL, or with the process.
func (a *Address) Releasable() bool { return a.where.kind.releasable }

// Examine says what can be said of the store before it is open.
func (a *Address) Examine() []Finding {
	if a.where.kind.examine == nil {
		return nil
	}
	return a.where.kind.examine(a.where)
}

// EndsWithProcess reports whether a record ends with the last process that holds it
// open.
func (a *Address) EndsWithProcess() bool { return a.where.kind.endsWithProcess }
