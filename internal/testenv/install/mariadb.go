package install

import "errors"

// ErrNoMariaDB means that this machine has no MariaDB server. Its text says how
// to come by one.
var ErrNoMariaDB = errors.New("mariadbd and mariadb-install-db are not in PATH: install them " +
	"(Debian, Ubuntu: apt-get install mariadb-server; Fedora: dnf install mariadb-server; macOS: brew install mariadb) " +
	"or set ELECTION_TEST_MYSQL=host:port to a server that runs")

// ErrNoMariaDBClient means that this machine has no client of MariaDB. Its text says
// how to come by one.
var ErrNoMariaDBClient = errors.New("neither mariadb nor mysql, the clients, are in PATH: install it " +
	"(Debian, Ubuntu: apt-get install mariadb-client; Fedora: dnf install mariadb; macOS: brew install mariadb)")

// MariaDBClient returns the path of mariadb, which the packages of the server bring
// along, or of mysql, or ErrNoMariaDBClient.
func MariaDBClient() (string, error) {
	if path, err := lookFor(ErrNoMariaDBClient, "mariadb"); err == nil {
		return path, nil
	}
	return lookFor(ErrNoMariaDBClient, "mysql")
}

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
