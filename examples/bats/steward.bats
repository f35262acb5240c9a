# Tests against Steward with Bats.

setup_file() {
  load steward.bash
  start_steward
}

teardown_file() {
  load steward.bash
  stop_steward
}

setup() {
  load steward.bash
  control POST reset '{}'
}

@test "publishes a folder" {
  token=$(sign_in)
  [ "$(steward /admin/services/createFolder -d token="$token" -d folderName=Harbour)" = '{"status":"success"}' ]
  steward /admin/services -d token="$token" | grep -q '"Harbour"'
}

@test "starts from the same state" {
  run steward /admin/services -d token="$(sign_in)"
  [[ $output != *'"Harbour"'* ]]
}

@test "a token expires after two hours" {
  token=$(sign_in)
  control POST clock '{"advanceMs":7200000}'
  steward /admin/mode -d token="$token" | grep -q '"code":498'
}

@test "the journal shows what the program sent" {
  control POST failures '{"match":{"route":"/rest/info"},"respond":{"error":"unavailable"},"times":1}'
  steward /rest/info > /dev/null
  steward /rest/info > /dev/null
  # The newest is the first.
  [ "$(control GET 'requests?route=/rest/info' | grep -o '"status":[0-9]*' | tr '\n' ' ')" = '"status":200 "status":503 ' ]
}
