#!/bin/sh
# What the official image's entry point does with MARIADB_ROOT_PASSWORD,
# MARIADB_ALLOW_EMPTY_ROOT_PASSWORD, MARIADB_ROOT_HOST and MARIADB_DATABASE: it sets
# a server up that nobody can reach, and then starts it. Scripts of one's own it
# does not run.
set -e

case "$1" in
-*) set -- mariadbd "$@" ;;
esac
if [ "$1" != mariadbd ]; then
	exec "$@"
fi
data=/var/lib/mysql
if [ "$(id -u)" = 0 ]; then
	find "$data" /run/mysqld \! -user mysql -exec chown mysql: '{}' +
	exec setpriv --reuid=mysql --regid=mysql --clear-groups "$0" "$@"
fi
if [ -d "$data/mysql" ]; then
	exec "$@"
fi
if [ -z "$MARIADB_ROOT_PASSWORD$MARIADB_ALLOW_EMPTY_ROOT_PASSWORD" ]; then
	echo "[ERROR] [Entrypoint]: Database is uninitialized and password option is not specified" >&2
	exit 1
fi

mariadb-install-db --datadir="$data" --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve

# The healthcheck's user can do nothing, and its password nobody needs to know.
health=$(cat /proc/sys/kernel/random/uuid)
{
	cat <<-SQL
		FLUSH PRIVILEGES;
		CREATE USER 'root'@'${MARIADB_ROOT_HOST:-%}';
		GRANT ALL ON *.* TO 'root'@'${MARIADB_ROOT_HOST:-%}' WITH GRANT OPTION;
		SET PASSWORD FOR 'root'@'${MARIADB_ROOT_HOST:-%}' = PASSWORD('$MARIADB_ROOT_PASSWORD');
		SET PASSWORD FOR 'root'@'localhost' = PASSWORD('$MARIADB_ROOT_PASSWORD');
		CREATE USER healthcheck@'127.0.0.1' IDENTIFIED BY '$health';
		CREATE USER healthcheck@'::1' IDENTIFIED BY '$health';
		CREATE USER healthcheck@localhost IDENTIFIED BY '$health';
	SQL
	if [ -n "$MARIADB_DATABASE" ]; then
		echo "CREATE DATABASE IF NOT EXISTS \`$MARIADB_DATABASE\`;"
	fi
} | mariadbd --bootstrap --datadir="$data"
printf '[client]\nuser=healthcheck\npassword=%s\n' "$health" > "$data/.my-healthcheck.cnf"
exec "$@"
