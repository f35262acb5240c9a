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
