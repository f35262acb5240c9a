# Starts Steward once for a file of tests, as a process on a free port. Needs Bats 1.5 or newer and curl.
#
#   STEWARD_COMMAND=./steward-0.2.0-linux-x64 bats steward.bats

STEWARD_COMMAND=${STEWARD_COMMAND:-node_modules/.bin/steward}
# In seconds.
STEWARD_START_LIMIT=${STEWARD_START_LIMIT:-30}
STEWARD_PASSWORD='correct horse'

# Call it in setup_file. Sets STEWARD_URL.
start_steward() {
  local log=$BATS_FILE_TMPDIR/steward.err
  # Steward reads no .env. Without 3>&-, bats would wait for the server after its last test.
  env -i PATH="$PATH" PORT=0 ADMIN_PASSWORD="$STEWARD_PASSWORD" LOG_LEVEL=silent TEST_CONTROL=true UPGRADE_STEP_MS=0 \
    "$STEWARD_COMMAND" > /dev/null 2> "$log" 3>&- &
  export STEWARD_PID=$!
  local tries=$((STEWARD_START_LIMIT * 10))
  # The server accepts requests when it prints this line: "Steward listens on http://127.0.0.1:49152".
  until STEWARD_URL=$(sed -n 's/^Steward listens on //p' "$log") && [ -n "$STEWARD_URL" ]; do
    tries=$((tries - 1))
    if [ "$tries" -le 0 ] || ! kill -0 "$STEWARD_PID" 2> /dev/null; then
      echo "Steward did not start within $STEWARD_START_LIMIT seconds." >&2
      cat "$log" >&2
      kill -9 "$STEWARD_PID" 2> /dev/null
      return 1
    fi
    sleep 0.1
  done
  export STEWARD_URL
}

# Call it in teardown_file. Ends the server within 20 seconds.
stop_steward() {
  [ -n "${STEWARD_PID:-}" ] || return 0
  kill "$STEWARD_PID" 2> /dev/null || return 0
  for _ in $(seq 200); do
    kill -0 "$STEWARD_PID" 2> /dev/null || return 0
    sleep 0.1
  done
  kill -9 "$STEWARD_PID"
}

# control METHOD PATH [JSON]: the clock, failures, the journal or all of the state.
control() {
  curl -sS --fail-with-body --max-time 30 -H 'content-type: application/json' -X "$1" ${3:+-d "$3"} "$STEWARD_URL/control/$2"
}

# steward PATH [curl arguments …]: a request with f=json.
steward() {
  local path=$1
  shift
  curl -sS --max-time 30 -d f=json "$@" "$STEWARD_URL$path"
}

sign_in() {
  steward /tokens/generateToken -d username=admin --data-urlencode password="$STEWARD_PASSWORD" |
    sed 's/.*"token":"\([^"]*\)".*/\1/'
}
