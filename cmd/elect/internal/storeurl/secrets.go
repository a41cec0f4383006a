package storeurl

import "strings"

// Variable is the environment variable with the URL of the store.
const Variable = "ELECT_STORE"

// A secret is where the credentials of one kind of store can be, besides its URL.
type secret struct {
	variables []string // that hold secrets themselves: COMMAND does not get them
	instead   string   // of a URL on the command line, for people
}

// secretOf returns where the secrets of a kind of store are. Variables that only name
// a file (CONSUL_HTTP_TOKEN_FILE, PGPASSFILE, the keys of TLS) hold none: who may read
// the file can do so without them.
func secretOf(kind string) secret {
	return map[string]secret{
		"etcd":     {[]string{"ETCDCTL_USER", "ETCDCTL_PASSWORD"}, "ETCDCTL_PASSWORD"},
		"consul":   {[]string{"CONSUL_HTTP_TOKEN", "CONSUL_HTTP_AUTH"}, "CONSUL_HTTP_TOKEN or CONSUL_HTTP_TOKEN_FILE"},
		"redis":    {[]string{"REDISCLI_AUTH", "REDISCLI_SENTINEL_AUTH"}, "REDISCLI_AUTH"},
		"postgres": {[]string{"PGPASSWORD", "PGSSLPASSWORD"}, "PGPASSWORD or PGPASSFILE"},
		"mysql":    {[]string{"MYSQL_PWD"}, "MYSQL_PWD"},
	}[kind]
}

// Secrets returns the environment variables that may hold secrets of the store: its
// URL, and what stores of the kind take their credentials from.
func (a *Address) Secrets() []string {
	return append([]string{Variable}, secretOf(a.Kind).variables...)
}

// Exposed says where a secret that is in the URL would be seen by nobody else, if
// there is one.
func (a *Address) Exposed() (instead string, ok bool) {
	if a.where.password == "" && (a.Kind != "consul" || a.where.user == "") { // whose user is a token
		return "", false
	}
	return strings.Join([]string{Variable, secretOf(a.Kind).instead}, ", "), true
}
