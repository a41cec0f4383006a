//go:build !unix

package main

import "github.com/spf13/cobra"

const rootExample = `  elect status billing                        # print who leads
  elect watch -o json billing                 # print each change
  elect doctor --store redis://localhost      # say what the store can promise`

// processCommands are the commands that start processes, which take a Unix
// system: signals, process groups, and who inherits what.
func processCommands(*settings) []*cobra.Command { return nil }

func role([]string) (perform func() error, ok bool) { return nil, false }
