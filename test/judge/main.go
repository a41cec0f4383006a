// Command judge asks all rules about recorded histories again, and draws them.
//
//	go run ./test/judge FILE...
//
// It exits with 1 if a history shows a promise broken, with 2 if it cannot be
// read.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

func main() {
	os.Exit(judge(os.Args[1:], os.Stdout, os.Stderr))
}

func judge(files []string, out, log io.Writer) (status int) {
	if len(files) == 0 {
		fmt.Fprintln(log, "usage: judge FILE...")
		return 2
	}
	for _, file := range files {
		h, err := history.Load(file)
		if err != nil {
			fmt.Fprintln(log, "judge:", err)
			return 2
		}
		findings := oracle.Judge(h, append(oracle.All(), oracle.Asked()...)...)
		fmt.Fprintf(out, "%s\nTTL %v, seed %d; again: %s\n\n%s\n%s\n\n%s\n", h.Title, h.TTL, h.Seed, h.Command,
			history.Timeline(h, 110), history.Legend(), findings)
		if len(findings.Broken()) > 0 {
			status = 1
		}
	}
	return status
}
