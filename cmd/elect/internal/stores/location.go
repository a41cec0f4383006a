package stores

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A location is what follows the scheme of a URL.
type location struct {
	slashes        bool // it began with //
	user, password string
	hosts          []string // host or host:port, IPv6 in brackets
	path           string   // unescaped, with its first slash
	query          url.Values

	kind   kind
	tls    bool
	getenv func(string) string
}

// String is the location without user and query.
func (l *location) String() string {
	s := escapePath(l.path)
	if l.slashes {
		s = "//" + strings.Join(l.hosts, ",") + s
	}
	return s
}

// locate takes rest apart. net/url will not do: it knows one host, and its
// errors quote what they do not understand.
func locate(rest string) (*location, error) {
	l := &location{}
	if strings.Contains(rest, "#") {
		return nil, errors.New("a # that is not written as %23")
	}
	rest, query, _ := strings.Cut(rest, "?")
	var err error
	if l.query, err = url.ParseQuery(query); err != nil {
		return nil, errors.New("the part after the question mark is malformed")
	}
	if authority, ok := strings.CutPrefix(rest, "//"); ok {
		l.slashes = true
		slash := strings.IndexByte(authority, '/')
		if slash < 0 {
			slash = len(authority)
		}
		authority, rest = authority[:slash], authority[slash:]
		if err := l.authority(authority); err != nil {
			return nil, err
		}
	}
	if l.path, err = url.PathUnescape(rest); err != nil {
		return nil, errors.New("the path is malformed")
	}
	return l, nil
}

func (l *location) authority(s string) error {
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		user, password, _ := strings.Cut(s[:at], ":")
		var err1, err2 error
		l.user, err1 = url.PathUnescape(user)
		l.password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil {
			return errors.New("the part before the @ is malformed")
		}
		s = s[at+1:]
	}
	if s == "" {
		return nil
	}
	for i, host := range strings.Split(s, ",") {
		if err := checkHost(host); err != nil {
			return fmt.Errorf("host %d %w", i+1, err)
		}
		l.hosts = append(l.hosts, host)
	}
	return nil
}

func checkHost(s string) error {
	host, port, ok := splitPort(s)
	if ok {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("has a port that is not a number from 1 to 65535")
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); !ok || net.ParseIP(inner) == nil {
			return errors.New("is not an IPv6 address in brackets")
		}
		return nil
	}
	if host == "" {
		return errors.New("is empty")
	}
	if strings.ContainsFunc(host, func(r rune) bool {
		return (r < 'a' || 'z' < r) && (r < 'A' || 'Z' < r) && (r < '0' || '9' < r) && !strings.ContainsRune(".-_", r)
	}) {
		return errors.New("is not a host name or address")
	}
	return nil
}

// splitPort splits host:port. The host of an IPv6 address keeps its brackets.
func splitPort(s string) (host, port string, ok bool) {
	colon := strings.LastIndexByte(s, ':')
	if colon < 0 || strings.HasSuffix(s, "]") {
		return s, "", false
	}
	return s[:colon], s[colon+1:], true
}

// addresses returns the hosts, with the port where none is given.
func (l *location) addresses(port string) []string {
	all := []string{}
	for _, host := range l.hosts {
		if _, _, ok := splitPort(host); !ok {
			host += ":" + port
		}
		all = append(all, host)
	}
	return all
}

// prefix returns what the path puts before the names of elections: the path
// without its first slash, and a slash behind.
func (l *location) prefix() string {
	prefix := strings.TrimPrefix(l.path, "/")
	if prefix == "" || strings.HasSuffix(prefix, "/") {
		return prefix
	}
	return prefix + "/"
}

// flag returns a parameter that is true or false.
func (l *location) flag(name string) (bool, error) {
	if !l.query.Has(name) {
		return false, nil
	}
	on, err := strconv.ParseBool(l.query.Get(name))
	if err != nil {
		return false, fmt.Errorf("parameter %q is neither true nor false", name)
	}
	return on, nil
}

// duration returns the parameter, zero if it is not given.
func (l *location) duration(name string) (time.Duration, error) {
	s := l.query.Get(name)
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("parameter %q is not a duration such as 10s", name)
	}
	return d, nil
}

// oneOf wants the parameter, if it is given, to be one of the values.
func (l *location) oneOf(name string, values ...string) error {
	if l.query.Has(name) && !slices.Contains(values, l.query.Get(name)) {
		return fmt.Errorf("parameter %q is none of %s", name, strings.Join(values, ", "))
	}
	return nil
}

// expiryParam says who judges that a record is over.
const expiryParam = "expiry"

// observed reports whether the URL lets the observers judge, not the store.
func (l *location) observed() (bool, error) {
	switch l.query.Get(expiryParam) {
	case "", "store":
		return false, nil
	case "observer":
		return true, nil
	}
	return false, fmt.Errorf("parameter %q is neither store nor observer", expiryParam)
}

// setting returns the parameter or, if it is not given, the first environment
// variable that is.
func (l *location) setting(param string, vars ...string) string {
	if s := l.query.Get(param); s != "" {
		return s
	}
	return l.env(vars...)
}

// envFlag returns an environment variable that is true or false, or what it means
// that there is none.
func (l *location) envFlag(name string, unset bool) (bool, error) {
	s := l.getenv(name)
	if s == "" {
		return unset, nil
	}
	on, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("%s is neither true nor false", name)
	}
	return on, nil
}

func (l *location) env(vars ...string) string {
	for _, name := range vars {
		if s := l.getenv(name); s != "" {
			return s
		}
	}
	return ""
}

// escapePath writes a path as it stands in a URL.
func escapePath(path string) string {
	return (&url.URL{Path: path}).EscapedPath()
}
