#!/bin/sh
# Checks the examples of docs/prices.txt.
failed=0
check() {
    got=$(sh src/fare.sh "$1" "$2" "$3")
    if [ "$got" = "$4" ]; then
        echo "ok: $1 adults, $2 children, $3 cars: $got"
    else
        echo "FAILED: $1 adults, $2 children, $3 cars: expected $4, got $got"
        failed=1
    fi
}
check 2 0 0 900
check 2 1 0 1125
check 2 1 1 2925
exit $failed
