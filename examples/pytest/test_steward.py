"""Tests against Steward with pytest."""


def test_publishes_a_folder(steward):
    token = steward.sign_in()
    assert steward.post("/admin/services/createFolder", token=token, folderName="Harbour") == (200, {"status": "success"})
    _, services = steward.post("/admin/services", token=token)
    assert "Harbour" in services["folders"]


def test_starts_from_the_same_state(steward):
    _, services = steward.post("/admin/services", token=steward.sign_in())
    assert "Harbour" not in services["folders"]


def test_token_expires_after_two_hours(steward):
    token = steward.sign_in()
    steward.control("clock", {"advanceMs": 120 * 60_000})
    status, answer = steward.post("/admin/mode", token=token)
    assert (status, answer["error"]["code"]) == (401, 498)


def test_the_journal_shows_what_the_program_sent(steward):
    steward.control("failures", {"match": {"route": "/rest/info"}, "respond": {"error": "unavailable"}, "times": 1})
    assert [steward.get("/rest/info")[0] for _ in range(2)] == [503, 200]
    requests = steward.control("requests?route=/rest/info")["requests"]
    # The newest is the first.
    assert [request["status"] for request in requests] == [200, 503]
