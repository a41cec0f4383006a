package storeurl

import (
	"errors"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	sqlkv "github.com/electkv/election/backends/sql"
)

// mysqlParams are the URL parameters of MySQL and MariaDB besides those of TLS.
func mysqlParams() []string { return []string{"tls", "table", expiryParam} }

func parseMySQL(l *location) (opener, error) {
	switch {
	case len(l.hosts) > 1:
		return nil, errors.New("several hosts; name the one that is written to, or a proxy before them")
	case len(l.hosts) == 0 && l.env("MYSQL_HOST") == "":
		return nil, errors.New("no host, and no MYSQL_HOST")
	case len(l.hosts) == 0:
		host := l.env("MYSQL_HOST")
		if err := checkHost(host); err != nil {
			return nil, errors.New("MYSQL_HOST is not a host")
		}
		l.hosts = []string{host}
	}
	database := strings.TrimPrefix(l.path, "/")
	if database == "" || strings.Contains(database, "/") {
		return nil, errors.New("the path is not the name of a database")
	}
	if l.user == "" {
		return nil, errors.New("no user: write user@")
	}
	secure, err := l.flag("tls")
	if err != nil {
		return nil, err
	}
	l.tls = secure
	config := mysql.NewConfig()
	if config.TLS, err = l.tlsConfig(tlsSource{}); err != nil {
		return nil, err
	}
	config.User, config.Passwd, config.Net, config.DBName = l.user, l.password, "tcp", database
	if config.Passwd == "" {
		config.Passwd = l.env("MYSQL_PWD")
	}
	port := l.env("MYSQL_TCP_PORT")
	if port == "" {
		port = "3306"
	}
	config.Addr = l.addresses(port)[0]
	config.Timeout = 5 * time.Second
	config.InterpolateParams = true // or else each statement is two messages
	// A statement that waits for a lock goes on when nobody waits for it any more.
	config.Params = map[string]string{"innodb_lock_wait_timeout": "5"}
	config.Logger = &mysql.NopLogger{} // what is wrong comes back as an error as well
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return l.inDatabase(sqlkv.MySQL, sqlkv.Options{Table: l.query.Get("table")}, connector, config.Addr)
}
