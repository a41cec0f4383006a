#!/bin/sh
# What the official image's entry point does: options and configuration files
# alone are redis-server's, which does not run as root.
set -e

case "$1" in
-* | *.conf) set -- redis-server "$@" ;;
esac
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
	find . \! -user redis -exec chown redis '{}' +
	exec setpriv --reuid=redis --regid=redis --clear-groups "$0" "$@"
fi
if [ "$(umask)" = 0022 ]; then
	umask 0077
fi
exec "$@"
