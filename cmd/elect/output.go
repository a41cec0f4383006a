package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

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
