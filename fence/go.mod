module github.com/electkv/election/fence

go 1.26.0

require (
	github.com/electkv/election v0.1.0
	github.com/gofrs/flock v0.13.1
	github.com/stretchr/testify v1.12.1
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
