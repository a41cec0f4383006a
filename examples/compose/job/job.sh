#!/bin/sh
# What only one container may do at a time. It runs while its container leads, and
# ends soon after SIGTERM.
trap 'echo "stopped token=$ELECTION_TOKEN"; exit 0' TERM
echo "leading token=$ELECTION_TOKEN"
while :; do
	echo "working token=$ELECTION_TOKEN"
	sleep 1 &
	wait $!
done
