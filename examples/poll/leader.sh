#!/bin/sh
# Work while elect, which runs beside this script, says that this host leads.
#
#   elect run --http 127.0.0.1:4040 billing &
#   sh leader.sh
#
# A 200 is true only at the moment when it was sent, so this asks again before each step of
# the work, and takes no answer for a no. A script that is frozen between the answer and a
# write comes too late all the same: give the token (ELECTION_TOKEN, where elect starts the
# script) to whatever you write to, and have it refuse smaller ones.
#
# The steps are short: --grace is how long elect keeps the next leader waiting, and the
# pause, the question and a step have to fit into it.
set -u
url=${LEADER_URL:-http://127.0.0.1:4040/leader}

# token prints the token of the term, and succeeds, if this host leads.
token() {
    answer=$(curl --silent --fail --noproxy '*' --max-time 1 "$url") || return
    answer=${answer#*\"token\":}
    echo "${answer%%,*}"
}

# One short step of the work. What it writes to gets the token.
step() { echo "working token=$1"; }

while :; do
    if leading=$(token); then
        step "$leading"
    fi
    sleep 1
done
