#!/bin/sh
# What the official image's entry point does with CONSUL_BIND_INTERFACE,
# CONSUL_CLIENT_INTERFACE and CONSUL_LOCAL_CONFIG, and with the agent's folders.
set -e

bind=
if [ -n "$CONSUL_BIND_INTERFACE" ]; then
	bind="-bind={{ GetInterfaceIP \"$CONSUL_BIND_INTERFACE\" }}"
fi
client=
if [ -n "$CONSUL_CLIENT_INTERFACE" ]; then
	client="-client={{ GetInterfaceIP \"$CONSUL_CLIENT_INTERFACE\" }}"
fi
if [ -n "$CONSUL_LOCAL_CONFIG" ]; then
	echo "$CONSUL_LOCAL_CONFIG" > /consul/config/local.json
fi

case "$1" in
-*) set -- consul "$@" ;;
agent)
	shift
	set -- consul agent -data-dir=/consul/data -config-dir=/consul/config ${bind:+"$bind"} ${client:+"$client"} "$@"
	;;
version) set -- consul "$@" ;;
esac
if [ "$1" = consul ] && [ "$(id -u)" = 0 ]; then
	chown consul:consul /consul/data /consul/config
	set -- setpriv --reuid=consul --regid=consul --clear-groups "$@"
fi
exec "$@"
