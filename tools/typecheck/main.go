// Command typecheck checks the types of packages, as the compiler does before it generates code. It
// reads all that they import from source, so it takes half a minute where go vet and go build would
// first compile everything for another system or with another release of Go:
//
//	GOOS=darwin CGO_ENABLED=0 typecheck work
//	GOTOOLCHAIN=go1.26.0 typecheck -test=false ./...
//
// The exit status is 0 if all is well, 1 if a package has errors, and 2 if nothing could be checked.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	tests := flag.Bool("test", true, "check the tests as well")
	flag.Parse()
	// Load also runs go where no module is, and there -modfile in GOFLAGS would be an error.
	flags := strings.Fields(os.Getenv("GOFLAGS"))
	_ = os.Unsetenv("GOFLAGS") // which cannot fail for this name
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax, Tests: *tests, BuildFlags: flags}, flag.Args()...)
	if err == nil && len(pkgs) == 0 {
		err = fmt.Errorf("no package matches %q", flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "typecheck:", err)
		os.Exit(2)
	}
	if packages.PrintErrors(pkgs) > 0 {
		os.Exit(1)
	}
}
