package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// released is the version of a released binary, which its build sets (.goreleaser.yaml). Others
// find their version in what the go command notes in each program.
var released string //nolint:gochecknoglobals // the linker sets it

// A build is what a program was built from, and for what.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the checkout that it was built in
	Modified bool   `json:"modified,omitempty"` // the checkout had changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "version [flags]",
		Short: "Print the version",
		Long: `Print the version of elect, and of the Go release that it was built with.

With -o json it is an object with version, go and platform, and, if elect was built in a
checkout, revision and, if that had changes, modified.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return thisBuild().print(cmd.OutOrStdout(), out)
		},
	}
	outputFlag(cmd, &out)
	return cmd
}

// version returns the version as logs have it.
func version() string { return thisBuild().Version }

// thisBuild says what this program was built from.
func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return buildOf(info, released)
}

// buildOf says what a program was built from: the release, if it is one, else the version of its
// module, which is made up from the revision in a checkout, else the bare revision.
func buildOf(info *debug.BuildInfo, release string) build {
	b := build{Go: info.GoVersion, Platform: runtime.GOOS + "/" + runtime.GOARCH}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	module, bare := info.Main.Version, b.short()
	if !strings.HasPrefix(module, "v") { // "(devel)", or nothing
		module = ""
	}
	if bare != "" && b.Modified {
		bare += "+dirty" // as the go command has it
	}
	b.Version = cmp.Or(release, module, bare, "(devel)")
	return b
}

// short returns the revision as versions of modules have it.
func (b build) short() string { return b.Revision[:min(12, len(b.Revision))] }

// String returns the line for people.
func (b build) String() string {
	text := "elect " + b.Version
	if !strings.Contains(b.Version, b.short()) {
		text += " (" + b.short()
		if b.Modified {
			text += ", modified"
		}
		text += ")"
	}
	return fmt.Sprintf("%s %s %s", text, b.Go, b.Platform)
}

func (b build) print(out io.Writer, f format) error {
	if f == asJSON {
		return jsonLine(out, b)
	}
	_, err := fmt.Fprintln(out, b)
	return err
}
