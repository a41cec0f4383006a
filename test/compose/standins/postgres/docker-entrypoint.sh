#!/bin/sh
# What the official image's entry point does with POSTGRES_USER, POSTGRES_PASSWORD,
# POSTGRES_DB and POSTGRES_HOST_AUTH_METHOD: it sets a server up that nobody can
# reach but by its socket, and then starts it. Scripts of one's own it does not run.
set -e

case "$1" in
-*) set -- postgres "$@" ;;
esac
if [ "$1" != postgres ]; then
	exec "$@"
fi
if [ "$(id -u)" = 0 ]; then
	mkdir -p "$PGDATA"
	chmod 0700 "$PGDATA"
	find "$PGDATA" /var/run/postgresql \! -user postgres -exec chown postgres '{}' +
	exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi
if [ -s "$PGDATA/PG_VERSION" ]; then
	exec "$@"
fi

user="${POSTGRES_USER:-postgres}"
if [ -z "$POSTGRES_PASSWORD" ] && [ "$POSTGRES_HOST_AUTH_METHOD" != trust ]; then
	echo "Error: Database is uninitialized and superuser password is not specified." >&2
	exit 1
fi
password=$(mktemp)
printf '%s\n' "$POSTGRES_PASSWORD" > "$password"
set -- "$@"
initdb --username="$user" ${POSTGRES_PASSWORD:+--pwfile="$password"} --auth-local=trust --encoding=UTF8 --locale=C
rm "$password"
echo "listen_addresses = '*'" >> "$PGDATA/postgresql.conf"
echo "host all all all ${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}" >> "$PGDATA/pg_hba.conf"

pg_ctl -D "$PGDATA" -o "-c listen_addresses='' -p 5432" -w start
if [ "${POSTGRES_DB:-$user}" != postgres ]; then
	psql --username "$user" --dbname postgres --no-password -v db="${POSTGRES_DB:-$user}" <<-'SQL'
		CREATE DATABASE :"db";
	SQL
fi
pg_ctl -D "$PGDATA" -m fast -w stop
exec "$@"
