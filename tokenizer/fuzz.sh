#!/bin/sh
# Runs every fuzz target of this package, one after the other, for a given time each:
#
#	tokenizer/fuzz.sh 1m
set -eu
cd "$(dirname "$0")"
time=${1:-1m}
failed=
for target in $(go test -list '^Fuzz' . | grep '^Fuzz'); do
	echo "$target"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -parallel "${PARALLEL:-2}" . || failed="$failed $target"
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
