package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/electkv/election"
)

// A state is one line of output: who leads an election.
type state struct {
	Time  time.Time `json:"time"`
	Name  string    `json:"name"`
	ID    string    `json:"id"`
	Value string    `json:"value"`
	Token uint64    `json:"token"`
	State string    `json:"state"` // leader, vacant or foreign

	// What status knows beyond that, if anything.
	Lock    string `json:"lock,omitempty"`    // what a foreign lock looks like
	Waiting *int   `json:"waiting,omitempty"` // how many stand in its line
	Hidden  string `json:"hidden,omitempty"`  // another lock, which the URL does not see

	Hold *hold `json:"hold,omitempty"` // what keeps it closed beyond a term

	Since *time.Time `json:"since,omitempty"` // by the leader's wall clock

	// What it knows where there is a succession.
	Rank  *int     `json:"rank,omitempty"`
	Heir  *heir    `json:"heir,omitempty"`
	Heirs []string `json:"heirs,omitempty"` // whom the leader wants after it, in order
}

// An heir is who is next.
type heir struct {
	ID    string    `json:"id"`
	Value string    `json:"value"`
	Rank  int       `json:"rank"`
	Since time.Time `json:"since,omitzero"` // by its own wall clock
}

// stateOf returns the state of an election with or without a leader.
func stateOf(name string, leader election.Leader, vacant bool) state {
	s := state{Time: time.Now().UTC(), Name: name, ID: leader.ID, Value: leader.Value, Token: leader.Token, State: "leader"}
	switch {
	case vacant:
		s.State = "vacant"
	case leader.Foreign:
		s.State = "foreign"
	}
	return s
}

// A format is how output is written.
type format string

const (
	asText format = "text"
	asJSON format = "json"
)

// outputFlag adds -o.
func outputFlag(cmd *cobra.Command, f *format) {
	*f = asText
	cmd.Flags().VarP(f, "output", "o", "`format` of the output: text or json")
	complete(cmd, "output", cobra.ShellCompDirectiveNoFileComp, string(asText), string(asJSON))
}

// String implements pflag.Value.
func (f *format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

// Set implements pflag.Value.
func (f *format) Set(s string) error {
	switch format(s) {
	case asText, asJSON:
		*f = format(s)
		return nil
	}
	return fmt.Errorf("use text or json")
}

// jsonLine writes v as one line.
func jsonLine(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// printable quotes text that would spoil a line, or a terminal.
func printable(s string) string {
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == '\ufffd' || (0x80 <= r && r < 0xa0) {
			return fmt.Sprintf("%q", s)
		}
	}
	return s
}

// short cuts long values for people.
func short(s string) string {
	const most = 120
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return printable(s)
}
