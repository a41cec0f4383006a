package stores

import "slices"

// Variable is the environment variable with the URL of the store.
const Variable = "ELECT_STORE"

// Secrets returns the environment variables that may hold secrets of the store: its
// URL, and what stores of the kind take their credentials from. Variables that only
// name a file (CONSUL_HTTP_TOKEN_FILE, PGPASSFILE, the keys of TLS) hold none: who may
// read the file can do so without them.
func (a *Address) Secrets() []string { return slices.Concat([]string{Variable}, a.where.kind.secrets) }

// Exposed says where a secret that is in the URL would be seen by nobody else, if
// there is one.
func (a *Address) Exposed() (instead string, ok bool) {
	if a.where.password == "" {
		return "", false
	}
	return Variable + ", " + a.where.kind.instead, true
}
