module github.com/electkv/election

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.0.0
	github.com/stretchr/testify v1.9.0
	golang.org/x/sys v0.13.0
	pgregory.net/rapid v1.1.0
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
