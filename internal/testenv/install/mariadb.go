package install

import "errors"

// ErrNoMariaDB means that this machine has no MariaDB server. Its text says how
// to come by one.
var ErrNoMariaDB = errors.New("mariadbd and mariadb-install-db are not in PATH: install them " +
	"(Debian, Ubuntu: apt-get install mariadb-server; Fedora: dnf install mariadb-server; macOS: brew install mariadb) " +
	"or set ELECTION_TEST_MYSQL=host:port to a server that runs")

// MariaDB returns the paths of mariadbd and of mariadb-install-db, or
// ErrNoMariaDB.
func MariaDB() (server, setup string, err error) {
	folders := []string{"/usr/sbin", "/usr/libexec", "/usr/local/bin", "/usr/bin"}
	if server, err = lookFor(ErrNoMariaDB, "mariadbd", folders...); err != nil {
		return "", "", err
	}
	setup, err = lookFor(ErrNoMariaDB, "mariadb-install-db", folders...)
	return server, setup, err
}
