//go:build !unix

package main

import "github.com/spf13/cobra"

// processCommands are the commands that start processes, which take a Unix
// system: signals, process groups, and who inherits what.
func processCommands(*settings) []*cobra.Command { return nil }

func role([]string) (perform func() error, ok bool) { return nil, false }
