package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newManual writes the manual pages of a package. They are made of the help texts. A generator
// that takes these for Markdown, such as cobra's, would run the lines of their lists together.
func newManual() *cobra.Command {
	return &cobra.Command{
		Use:    "manual FOLDER",
		Short:  "Write manual pages into a folder",
		Long:   "Write manual pages into a folder. They have the date of SOURCE_DATE_EPOCH, or none.",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			date, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
			if err != nil {
				return err
			}
			return writeManual(cmd.Root(), date, args[0])
		},
	}
}

// sourceDate returns the date of a time in seconds since 1970, if there is one.
func sourceDate(epoch string) (string, error) {
	if epoch == "" {
		return "", nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return "", fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC().Format(time.DateOnly), nil
}

// writeManual writes a page for the program, and one for each of its commands.
func writeManual(root *cobra.Command, date, folder string) error {
	for _, cmd := range append(documented(root), root) {
		path := filepath.Join(folder, pageName(cmd)+".1")
		if err := os.WriteFile(path, manualPage(cmd, date), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// documented are the commands below one that have a page of their own.
func documented(parent *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, cmd := range parent.Commands() {
		if cmd.Hidden || cmd.Name() == "help" {
			continue
		}
		all = append(all, cmd)
		if cmd.Name() != "completion" { // which has one for all shells
			all = append(all, documented(cmd)...)
		}
	}
	return all
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manualPage returns a command's page in the language of man(7).
func manualPage(cmd *cobra.Command, date string) []byte {
	var b bytes.Buffer
	name := roff(pageName(cmd))
	fmt.Fprintf(&b, ".TH \"%s\" 1 \"%s\" \"elect %s\" \"User Commands\"\n.nh\n.ad l\n", strings.ToUpper(name), date, roff(version()))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", name, roff(strings.ToLower(cmd.Short[:1])+cmd.Short[1:]))
	if cmd.Runnable() {
		fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", roff(cmd.UseLine()))
	}
	b.WriteString(".SH DESCRIPTION\n")
	writeText(&b, cmp.Or(cmd.Long, cmd.Short))
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	writeFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	writeFlags(&b, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	also := documented(cmd)
	if cmd.HasParent() {
		also = append([]*cobra.Command{cmd.Root()}, also...)
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, other := range also {
		comma := ","
		if i == len(also)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(pageName(other)), comma)
	}
	return b.Bytes()
}

// entry is a line of a list in a help text: two spaces, what it is about, and, further to the right,
// what there is to say.
var entry = regexp.MustCompile(`^  (\S.*?)(  +(\S.*))?$`)

// writeText writes paragraphs and lists.
func writeText(b *bytes.Buffer, text string) {
	inList := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		item := entry.FindStringSubmatchIndex(line)
		switch isList := strings.HasPrefix(line, "  "); {
		case isList && !inList:
			b.WriteString(".PD 0\n")
		case !isList && inList:
			b.WriteString(".PD\n.PP\n")
		case line == "":
			b.WriteString(".PP\n")
		}
		inList = strings.HasPrefix(line, "  ")
		switch {
		case item != nil && item[6] > 0:
			fmt.Fprintf(b, ".TP %dn\n%s\n%s\n", item[6]-2, roff(line[item[2]:item[3]]), roff(line[item[6]:]))
		case item != nil:
			fmt.Fprintf(b, ".TP 2n\n%s\n", roff(line[item[2]:]))
		case line != "":
			b.WriteString(roff(strings.TrimSpace(line)) + "\n")
		}
	}
	if inList {
		b.WriteString(".PD\n")
	}
}

// writeFlags writes a section about flags, each as the help has it.
func writeFlags(b *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		alone := pflag.NewFlagSet("", pflag.ContinueOnError)
		alone.AddFlag(f)
		flag, usage, _ := strings.Cut(strings.TrimSpace(alone.FlagUsages()), "   ")
		if flag != "" {
			fmt.Fprintf(b, ".TP\n\\fB%s\\fR\n%s\n", roff(flag), roff(usage))
		}
	})
}

// roff returns text as the formatter shows it unchanged.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`).Replace(text)
	text = strings.ReplaceAll(text, "\n.", "\n\\&.")
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
