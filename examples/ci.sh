#!/bin/sh
# Tests automation against Steward in CI: starts it, runs an upgrade, checks a webhook, lets an upgrade fail, stops it.
# Needs Node, npm and curl. STEWARD names the checkout of Steward; the default is the one that contains this script.
set -eu

STEWARD=${STEWARD:-$(cd "$(dirname "$0")/.." && pwd)}
PASSWORD='correct horse'
[ -e "$STEWARD/dist/main.js" ] || (cd "$STEWARD" && npm ci && npm run --silent build)

# Each file of the run lies in one directory. Steward starts in it, so it reads no .env of yours.
WORK=$(mktemp -d)
PIDS=
trap 'kill $PIDS 2> /dev/null || true; wait; rm -rf "$WORK"' EXIT
trap 'exit 1' INT TERM

fail() {
  echo "FAILED: $1" >&2
  cat "$WORK"/*.err >&2
  exit 1
}

# Runs "$@" until it succeeds, for up to 30 seconds.
wait_until() {
  tries=300
  until "$@"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || fail "timeout: $*"
    sleep 0.1
  done
}

# start_steward NAME [VARIABLE=value …] sets URL, STEWARD_KEY and PID. A restart is the way to reset the state: it takes under a second.
start_steward() {
  name=$1
  shift
  : > "$WORK/$name.err"
  (
    cd "$WORK"
    # PORT=0 selects a free port, so that jobs on one machine do not collide. Without UPGRADE_STEP_MS=0 each step takes 95 ms.
    exec env PORT=0 ADMIN_PASSWORD="$PASSWORD" UPGRADE_STEP_MS=0 LOG_LEVEL=warn "$@" node "$STEWARD/dist/main.js"
  ) > "$WORK/$name.log" 2> "$WORK/$name.err" &
  PID=$!
  PIDS="$PIDS $PID"
  wait_until is_started
  URL=$(sed -n 's/^Steward listens on //p' "$WORK/$name.err")
  wait_until curl -sf -o "$WORK/ready" "$URL/ready"
  # A key of a server that others use comes from the secrets of the pipeline. This server is new, so it creates one.
  token=$(curl -s "$URL/tokens/generateToken" -d username=admin --data-urlencode password="$PASSWORD" |
    sed 's/.*"token":"\([^"]*\)".*/\1/')
  STEWARD_KEY=$(curl -s "$URL/admin/security/self/keys/create" -d token="$token" -d name=ci |
    sed 's/.*"key":"\([^"]*\)".*/\1/')
}

# The server prints its address on standard error.
is_started() {
  kill -0 "$PID" 2> /dev/null || fail 'Steward did not start'
  grep -q '^  admin ' "$WORK/$name.err"
}

# post PATH [curl options]
post() {
  path=$1
  shift
  curl -s -H "Authorization: Bearer $STEWARD_KEY" "$URL/admin/$path" "$@"
}

# Prints the state of the newest job when it has ended. Steward answers as soon as there is news, or after 30 seconds.
wait_for_upgrade() {
  seen=0
  while :; do
    status=$(post "system/upgrades?after=$seen&wait=30")
    seen=$(echo "$status" | sed 's/.*"messageCount":\([0-9]*\).*/\1/')
    state=$(echo "$status" | sed 's/.*"state":"\([a-z_]*\)".*/\1/')
    [ "$state" = in_progress ] || break
  done
  echo "$state"
}

# expect WHAT ACTUAL EXPECTED
expect() {
  [ "$2" = "$3" ] || fail "$1: expected $3, got $2"
  echo "ok: $1: $2"
}

# 1. An upgrade succeeds, and a receiver gets the event.

# A receiver with a key that the test chooses. WEBHOOK_ALLOW_CIDRS lets webhooks point to this machine.
KEY="whsec_$(head -c 32 /dev/urandom | base64)"
SIGNATURE_KEYS=$KEY PORT=0 node "$STEWARD/examples/receiver-node/receiver.js" > "$WORK/received" 2> "$WORK/receiver.err" &
PIDS="$PIDS $!"
wait_until grep -qs '^listening' "$WORK/received"
RECEIVER=$(sed -n 's/^listening on //p' "$WORK/received")

start_steward first WEBHOOK_ALLOW_CIDRS=127.0.0.0/8
post services/webhooks/create -d name=ci -d hookUrl="$RECEIVER" -d changeTypes=UpgradeSucceeded,UpgradeFailed \
  --data-urlencode signatureKey="$KEY" > "$WORK/created"
post system/upgrades/upgrade -F versionManifest='{"id":"pat_17022022_1250"}' > "$WORK/started"
expect 'state of the upgrade' "$(wait_for_upgrade)" success
wait_until grep -q '^accepted UpgradeSucceeded ' "$WORK/received"
echo 'ok: the receiver accepted UpgradeSucceeded'

# 2. An upgrade fails once, because a container cannot be updated, and succeeds when it is resumed.

start_steward second SIMULATED_FAILURES=GATEWAY_PROXY:1
post system/upgrades/upgrade -F versionManifest='{"id":"pat_17022022_1250"}' > "$WORK/started"
expect 'state of the upgrade with a failure' "$(wait_for_upgrade)" failed
expect 'code of the last failure' "$(post system/upgrades | grep -o '"code":2901')" '"code":2901'
JOB=$(post system/upgrades | sed 's/.*"jobId":"\([^"]*\)".*/\1/')
post "system/jobs/$JOB/resume" -d f=json > "$WORK/resumed"
expect 'state of the resumed upgrade' "$(wait_for_upgrade)" success
