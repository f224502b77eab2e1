"""Who may speak with the studio: hosts, origins, tokens, bodies, and what its page may load."""

from __future__ import annotations

import json
import re

import pytest

from sfumato.app.studio.guard import MOST_BYTES, Guard, Keys, content_policy

pytest.importorskip("starlette", reason="needs sfumato[studio]")
testclient = pytest.importorskip("starlette.testclient", reason="the client of Starlette needs httpx")

PORT = 8123
OWN = f"http://127.0.0.1:{PORT}"
JSON = {"origin": OWN, "content-type": "application/json"}


async def echo(scope, receive, send):
    """Says back what it was given; fails where it is told to."""
    body = (await receive())["body"]
    if b"fail" in body:
        raise RuntimeError("the record of Ms Example at 40.1, -74.2")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"inside " + body})


def guarded(host="127.0.0.1", tiles=None):
    keys = Keys()
    client = testclient.TestClient(Guard(echo, keys=keys, host=host, port=PORT, tiles=tiles), base_url=OWN)
    return client, keys


@pytest.fixture
def entered():
    client, keys = guarded()
    assert client.get("/", params={"token": keys.token}).status_code == 200
    return client


def test_the_token_is_good_once_and_becomes_a_cookie_that_scripts_cannot_read():
    client, keys = guarded()
    first = client.get("/", params={"token": keys.token})
    assert first.text == "inside "
    cookie = first.headers["set-cookie"]
    assert re.fullmatch(rf"sfumato_studio_{PORT}=[\w-]{{43}}; Path=/; HttpOnly; SameSite=Strict", cookie)
    assert keys.token not in cookie
    assert client.get("/").text == "inside "  # the cookie is enough
    client.cookies.clear()
    again = client.get("/", params={"token": keys.token})
    assert again.status_code == 403 and "set-cookie" not in again.headers
    assert again.text == (
        "This link was used before, or is not whole. Go on in the browser in which it was opened first, or start the "
        "studio again: every start prints a new link."
    )


@pytest.mark.parametrize("path", ["/", "/static/studio.js", "/api/start", "/anything"])
@pytest.mark.parametrize("cookie", [None, "wrong", ""])
def test_nobody_without_the_cookie_is_told_anything(path, cookie):
    client, _ = guarded()
    if cookie is not None:
        client.cookies.set(f"sfumato_studio_{PORT}", cookie)
    answers = [client.get(path), client.post(path, headers=JSON, content="{}")]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert "inside" not in answers[0].text + answers[1].text


def test_a_wrong_token_does_not_use_up_the_right_one():
    client, keys = guarded()
    for wrong in ("", "x", keys.token[:-1], keys.token + "x", "ü"):
        assert client.get("/", params={"token": wrong}).status_code == 403
    assert client.get("/api/start", params={"token": keys.token}).status_code == 403  # it enters by the door alone
    assert client.get("/", params={"token": keys.token}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "127.0.0.1",
        "127.0.0.1:80",
        f"127.0.0.1:{PORT}/x",
        "[::1",
        f"192.168.1.7:{PORT}",
        f"LOCALHOST.:{PORT}",
        "evil.example",
        f"evil.example:{PORT}",
        f"127.0.0.1.evil.example:{PORT}",
        f"user@127.0.0.1:{PORT}",
    ],
)
def test_a_host_that_is_not_this_machine_is_not_answered(entered, host):
    answer = entered.get("/", headers={"host": host})
    assert answer.status_code == 421 and "inside" not in answer.text


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"[::1]:{PORT}"])
def test_names_of_this_machine_are_answered(entered, host):
    cookie = "; ".join(f"{one.name}={one.value}" for one in entered.cookies.jar)
    assert entered.get("/", headers={"host": host, "cookie": cookie}).status_code == 200


def test_where_it_listens_wider_addresses_in_figures_are_names_and_words_are_none():
    client, keys = guarded(host="0.0.0.0")
    client.get("/", params={"token": keys.token})
    cookie = {"cookie": "; ".join(f"{one.name}={one.value}" for one in client.cookies.jar)}
    assert client.get("/", headers={"host": f"192.168.1.7:{PORT}", **cookie}).status_code == 200
    assert client.get("/", headers={"host": f"rebound.example:{PORT}", **cookie}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", f"https://127.0.0.1:{PORT}", "http://127.0.0.1:9"])
def test_another_origin_is_refused_whatever_it_knows(entered, origin):
    for answer in (
        entered.get("/", headers={"origin": origin}),
        entered.post("/api/publish", headers={**JSON, "origin": origin}, content="{}"),
    ):
        assert answer.status_code == 403 and "inside" not in answer.text
        assert "The studio answers its own page alone" in answer.text


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_a_browser_says_to_come_from_elsewhere_is_refused(entered, site):
    assert entered.get("/", headers={"sec-fetch-site": site}).status_code == 403
    assert entered.post("/", headers={**JSON, "sec-fetch-site": site}, content="{}").status_code == 403
    assert entered.get("/", headers={"sec-fetch-site": "same-origin"}).status_code == 200
    assert entered.get("/", headers={"sec-fetch-site": "none"}).status_code == 200


def test_the_start_link_may_stand_anywhere_and_only_be_navigated_to():
    client, keys = guarded()
    there = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert client.get("/", params={"token": keys.token}, headers=there).status_code == 403
    there["sec-fetch-mode"] = "navigate"
    assert client.get("/", params={"token": keys.token}, headers=there).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/json"}, 403),  # without an origin
        ({"origin": OWN, "content-type": "text/plain"}, 415),  # what a form of another page could send
        ({"origin": OWN, "content-type": "application/x-www-form-urlencoded"}, 415),
        ({"origin": OWN}, 415),
        (JSON, 200),
        ({**JSON, "content-type": "application/json; charset=utf-8"}, 200),
    ],
)
def test_what_changes_anything_is_json_of_this_origin(entered, headers, status):
    assert entered.post("/api/publish", headers=headers, content="{}").status_code == status


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_no_other_methods_are_known(entered, method):
    assert entered.request(method, "/", headers=JSON).status_code == 405


def test_a_body_that_is_too_large_is_refused_and_not_read():
    client, keys = guarded()
    client.get("/", params={"token": keys.token})
    assert client.post("/api/x", headers=JSON, content=b"x" * MOST_BYTES).status_code == 200
    assert client.post("/api/x", headers=JSON, content=b"x" * (MOST_BYTES + 1)).status_code == 413
    lied = {**JSON, "content-length": str(MOST_BYTES + 1)}
    assert client.post("/api/x", headers=lied, content=b"x").status_code == 413
    chunks = (b"x" * 65536 for _ in range(1 + MOST_BYTES // 65536))  # without a length beforehand
    answer = client.post("/api/x", headers=JSON, content=chunks)
    assert answer.status_code == 413
    assert answer.json()["error"]["message"] == "A request holds at most 4 MB. Nothing was done."


def test_a_bug_is_told_by_its_class_alone(entered, capfd, monkeypatch):
    monkeypatch.delenv("SFUMATO_DEBUG", raising=False)
    answer = entered.post("/api/x", headers=JSON, content="fail")
    assert answer.status_code == 500
    assert "Example" not in answer.text and "40.1" not in answer.text
    assert json.loads(answer.text)["error"]["kind"] == "RuntimeError"
    assert "Example" not in "".join(capfd.readouterr())
    monkeypatch.setenv("SFUMATO_DEBUG", "1")
    entered.post("/api/x", headers=JSON, content="fail")
    assert "Example" in capfd.readouterr().err


def test_every_answer_says_what_the_page_may_do(entered):
    stranger, _ = guarded()
    for answer in (entered.get("/"), stranger.get("/"), entered.post("/api/x", headers=JSON, content="fail")):
        policy = answer.headers["content-security-policy"]
        assert policy == content_policy(None)
        assert "unsafe" not in policy and "http" not in policy and "default-src 'none'" in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "frame-ancestors 'none'" in policy
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_only_the_host_of_the_tiles_joins_and_only_for_images():
    policy = dict(part.split(" ", 1) for part in content_policy("https://tiles.example:8/{z}/{x}/{y}.png").split("; "))
    assert policy["img-src"] == "'self' data: blob: https://tiles.example:8"
    assert policy["connect-src"] == "'self' https://tiles.example:8"
    assert policy["script-src"] == "'self'" and policy["worker-src"] == "'self'" and policy["style-src"] == "'self'"


def test_headers_that_stand_twice_are_refused(entered):
    answer = entered.get("/", headers=[("host", f"127.0.0.1:{PORT}"), ("host", "evil.example")])
    assert answer.status_code == 400
