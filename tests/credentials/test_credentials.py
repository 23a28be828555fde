"""Reads with credentials: tokens of a token server, over TLS, to a service that checks them. Exactly the right rows, or a clear error; and no secret in anything."""

import json
import os
import threading
import time

import grpc
import pytest

import canary
from harness import TABLE, Server, assert_same_rows, make_table, read_result, run_headrace, write_parquet
from secure_service import SecureFront, TokenServer

ROWS = 2_900
PER_MESSAGE = 500
SLOW = 4 if "SANITIZED" in os.environ.get("HEADRACE_TEST_BUILD", "") else 1
CLEAR_ERROR_SECONDS = 10 * SLOW


@pytest.fixture(scope="module")
def table():
    return make_table(ROWS, seed=17)


@pytest.fixture(scope="module")
def server(headrace, table, tmp_path_factory):
    directory = tmp_path_factory.mktemp("secure")
    path = write_parquet(table, directory / "t.parquet")
    with Server(headrace, directory, "--load", f"{TABLE}={path}", "--message-rows", PER_MESSAGE) as running:
        yield running


@pytest.fixture
def tokens():
    with TokenServer() as running:
        yield running


@pytest.fixture
def front(server):
    with SecureFront(server.grpc) as running:
        yield running


@pytest.fixture
def secure(headrace, table, front, tokens, tmp_path):
    return Secure(headrace, table, front, tokens, tmp_path)


class Secure:
    """A table behind a front that wants tokens."""

    def __init__(self, headrace, table, front, tokens, directory):
        self.headrace, self.table, self.front, self.tokens, self.directory = headrace, table, front, tokens, directory
        self.target = directory / "out"
        self.key = canary.write_own(directory, "key.json", canary.service_account(tokens.uri))
        self.bundle = directory / "ca.pem"
        self.bundle.write_text(canary.certificate_pem())

    def connection(self, credentials=None):
        return ["--bigquery-storage-endpoint", self.front.endpoint, "--credentials", credentials or self.key, "--ca-bundle", self.bundle]

    def copy(self, *options, credentials=None, streams=1, seconds=60, adc="", **how):
        """At the most verbose level there is: gRPC's own log. What is printed is searched for canaries by harness.run_headrace."""
        return run_headrace(self.headrace, "copy", f"bq:{TABLE}", f"{self.target}/", "--json", *self.connection(credentials), "--max-stream-count", streams, *options,
                            seconds=seconds * SLOW, env=dict(os.environ, GRPC_VERBOSITY="debug", GOOGLE_APPLICATION_CREDENTIALS=str(adc)), **how)

    def assert_all_rows(self):
        assert_same_rows(read_result(self.target), self.table)

    def clear_error(self, *options, within=CLEAR_ERROR_SECONDS, **how):
        started = time.monotonic()
        out, _ = self.copy(*options, code=1, **how)
        assert time.monotonic() - started < within
        assert not self.target.exists() or list(self.target.iterdir()) == []
        return json.loads(out)["error"]


def unauthenticated(token):
    return grpc.StatusCode.UNAUTHENTICATED, f"the token {token} has expired"


@pytest.fixture(autouse=True)
def no_secret_in_any_file(tmp_path):
    yield
    assert canary.found_below(tmp_path) == []


@pytest.mark.parametrize("kind", ["key", "user", "adc", "variable", "none"])
def test_each_kind_of_credentials(secure, kind):
    credentials = {"key": secure.key, "user": canary.write_own(secure.directory, "user.json", canary.authorized_user(secure.tokens.uri)),
                   "adc": "adc", "variable": f"token:{canary.TOKEN_VARIABLE}", "none": "none"}[kind]
    secure.copy(credentials=credentials, streams=4, adc=secure.key)
    secure.assert_all_rows()
    assert len(secure.front.calls) == 5, "a session and four streams"
    if kind in ("key", "user", "adc"):
        assert secure.front.tokens() == [1] * 5
        assert [form["grant_type"].rpartition(":")[2] for form in secure.tokens.requests] == ["refresh_token" if kind == "user" else "jwt-bearer"]
    else:
        assert {token for token, _ in secure.front.calls} == {canary.TOKEN if kind == "variable" else ""}
        assert secure.tokens.requests == []


@pytest.mark.parametrize("kind, options, project", [("key", [], None), ("key", ["--quota-project", "payer"], "payer"), ("user", [], "users-project"),
                                                    ("user", ["--quota-project", "payer"], "payer")])
def test_every_call_names_the_project_whose_quota_it_uses(secure, kind, options, project):
    user = canary.write_own(secure.directory, "user.json", json.dumps({**json.loads(canary.authorized_user(secure.tokens.uri)), "quota_project_id": "users-project"}))
    secure.copy(*options, credentials=user if kind == "user" else secure.key, streams=2)
    secure.assert_all_rows()
    assert secure.front.projects == [project] * 3, "a session and two streams"


@pytest.mark.parametrize("channels", [1, 3])
def test_as_many_connections_as_channels(secure, channels):
    """All streams are open together before the first of them goes on."""
    together = threading.Barrier(4, timeout=30)

    def check(_, method, messages):
        if method == "ReadRows" and messages == 0:
            together.wait()

    secure.front.check = check
    secure.copy("--channels", channels, "--readers", 4, "--work-sharing", "false", streams=4)
    secure.assert_all_rows()
    assert len(secure.front.connections) == channels


def test_tokens_that_expire_in_mid_stream(secure, server):
    """The service ends a stream with UNAUTHENTICATED after each second message: it goes on behind the rows that came, with a new token."""
    expired = set()

    def check(token, method, messages):
        if messages == 2:
            expired.add(token)
        return unauthenticated(token) if token in expired else None

    secure.front.check = check
    before = server.opens()
    _, err = secure.copy()
    secure.assert_all_rows()
    assert secure.front.tokens() == [1, 1, 2, 3, 4]
    assert len(secure.tokens.requests) == 4
    assert [offsets for stream, offsets in server.opens().items() if stream not in before] in ([], [[0, 1000, 2000]]) and "has expired" in err


def test_many_streams_of_one_expired_token_wait_for_one_refresh(secure):
    """Eight streams are refused together; one request fetches what all of them go on with."""
    together = threading.Barrier(8, timeout=30)

    def check(token, method, messages):
        if method == "ReadRows" and token == f"{canary.TOKEN_PREFIX}1":
            together.wait()
            return unauthenticated(token)
        return None

    secure.front.check = check
    secure.tokens.script = [None, 0.3]
    secure.copy("--readers", 8, streams=8)
    secure.assert_all_rows()
    assert secure.front.tokens() == [1] * 9 + [2] * 8
    assert len(secure.tokens.requests) == 2


def test_tokens_of_two_seconds(secure):
    """A read of a few seconds: each stream opens with a token that is valid then."""
    secure.tokens.lifetime = 2
    opened = {}

    def check(token, method, messages):
        opened.setdefault(token, time.monotonic())
        if time.monotonic() - opened[token] > 2.5:
            return unauthenticated(token)
        if method == "ReadRows" and messages:
            time.sleep(0.7)
        return None

    secure.front.check = check
    secure.copy()
    secure.assert_all_rows()
    assert 2 <= len(secure.tokens.requests) <= 10 * SLOW
    assert secure.front.tokens() == sorted(secure.front.tokens())


@pytest.mark.parametrize("fault", [(500, ""), (503, '{"error":"backend"}'), "drop", 1.0], ids=["500", "503", "dropped", "slow"])
@pytest.mark.parametrize("when", ["at start", "in mid-stream"])
def test_faults_of_the_token_server_that_a_retry_mends(secure, fault, when):
    if when == "at start":
        secure.tokens.script = [fault, fault]
    else:
        secure.tokens.script = [None, fault, fault]
        secure.front.check = lambda token, method, messages: unauthenticated(token) if method == "ReadRows" and token == f"{canary.TOKEN_PREFIX}1" and messages == 2 else None
    secure.copy()
    secure.assert_all_rows()
    assert len(secure.tokens.requests) == (1 if when == "at start" else 2) + (0 if fault == 1.0 else 2)
    assert secure.tokens.issued == (1 if when == "at start" else 2)


@pytest.mark.parametrize("answer,says", [
    ((400, '{"error":"invalid_grant","error_description":"Invalid JWT Signature."}'), "invalid_grant (Invalid JWT Signature.)"),
    ((401, '{"error":"invalid_grant","error_description":"you sent ECHO"}'), "invalid_grant (you sent ...)"),
    ((200, "ECHO"), "is not a JSON object"),
    ((200, '{"access_token":"ya29.canary-x"}'), "expires_in"),
    ((200, " " * 100_000), "longer than 65536 bytes"),
    ((404, "ECHO"), "HTTP 404"),
], ids=["invalid_grant", "echo", "no json", "no lifetime", "huge", "not found"])
def test_a_token_that_there_will_not_be(secure, answer, says):
    secure.tokens.always = answer
    error = secure.clear_error()
    assert error["code"] == "UNAUTHENTICATED" and error["reason"] == "CREDENTIALS"
    assert says in error["message"] and "the service account's key given by credentials" in error["message"]
    assert secure.tokens.uri.removesuffix("/token") in error["message"]
    assert len(secure.tokens.requests) == 1 and secure.front.calls == []


@pytest.mark.parametrize("answer,attempts", [((503, ""), 4), ("drop", 4), ((400, '{"error":"invalid_grant"}'), 1)], ids=["503", "dropped", "invalid_grant"])
def test_a_refresh_that_fails_for_good_in_mid_stream(secure, answer, attempts):
    def check(token, method, messages):
        if method == "ReadRows" and messages == 2:
            secure.tokens.always = answer
            return unauthenticated(token)
        return None

    secure.front.check = check
    # The refused call is the first of the attempts without progress.
    error = secure.clear_error("--retry-max-attempts", attempts + 1 if attempts > 1 else 5)
    assert error["code"] == "UNAUTHENTICATED" and error["reason"] == "CREDENTIALS"
    assert "/streams/0" in error["message"] and "1000" in error["message"], "the error names stream and offset"
    assert "no access token for the service account's key given by credentials" in error["message"]
    assert len(secure.tokens.requests) == 1 + attempts


def test_a_service_that_refuses_every_token(secure):
    secure.front.check = lambda token, method, messages: unauthenticated(token)
    error = secure.clear_error()
    assert error["code"] == "UNAUTHENTICATED" and error["reason"] == "CREDENTIALS"
    assert "the token ... has expired" in error["message"] and "the service refused the service account's key given by credentials" in error["message"]
    assert secure.front.tokens() == [1, 2] and len(secure.tokens.requests) == 2


def test_a_permission_that_is_lost_in_mid_stream(secure):
    secure.front.check = lambda token, method, messages: (grpc.StatusCode.PERMISSION_DENIED, f"no more for {token}") if messages == 2 else None
    error = secure.clear_error()
    assert error["code"] == "PERMISSION_DENIED" and "no more for ..." in error["message"] and "/streams/0" in error["message"]
    assert len(secure.tokens.requests) == 1, "another token would not help"


def test_checkpoints_and_what_resumes_from_them_hold_no_secret(secure):
    checkpoint = secure.directory / "checkpoint"
    # So slow that the first checkpoint leaves rows to be read, and the resumed copy needs a token.
    secure.copy("--checkpoint", checkpoint, "--checkpoint-interval", "10ms", "--max-rows-per-second", 200, "--fail-point", "commit.before", streams=2, code=None)
    assert list(checkpoint.iterdir()) and not (secure.target / "_headrace_manifest.json").exists()
    assert canary.found_below(secure.directory) == []
    out, _ = run_headrace(secure.headrace, "resume", checkpoint, "--json", "--max-rows-per-second", 1_000_000, *secure.connection())
    secure.assert_all_rows()
    assert canary.found_in(out) == []
    assert len(secure.tokens.requests) >= 2


def test_plans_schemas_and_reports_hold_no_secret(secure):
    for verb in (["plan", f"bq:{TABLE}", f"{secure.target}/"], ["schema", f"bq:{TABLE}"]):
        for form in ([], ["--json"]):
            out, _ = run_headrace(secure.headrace, *verb, *form, *secure.connection())
            assert out
    out, _ = run_headrace(secure.headrace, "copy", f"bq:{TABLE}", f"{secure.target}/", *secure.connection())
    assert "2,900" in out or "2900" in out


def test_nothing_is_sent_in_plaintext(secure, server):
    """Credentials beside a plaintext endpoint are refused, and a token server beyond loopback must be https; neither is asked."""
    _, err = run_headrace(secure.headrace, "copy", f"bq:{TABLE}", f"{secure.target}/", "--bigquery-storage-endpoint", server.endpoint, "--credentials", secure.key, code=2)
    assert "credentials cannot be sent" in err
    elsewhere = canary.write_own(secure.directory, "elsewhere.json", canary.service_account("http://192.0.2.1/token"))
    error = secure.clear_error(credentials=elsewhere)
    assert "http beyond this machine" in error["message"] and error["reason"] == "CREDENTIALS"
    assert secure.tokens.requests == [] and secure.front.calls == []


@pytest.mark.parametrize("bundle", [None, "absent.pem", "key.json.canary"])
def test_a_certificate_that_is_not_trusted(secure, bundle):
    started = time.monotonic()
    options = ["--ca-bundle", secure.directory / bundle] if bundle else []
    out, _ = run_headrace(secure.headrace, "copy", f"bq:{TABLE}", f"{secure.target}/", "--json", "--bigquery-storage-endpoint", secure.front.endpoint, "--credentials", secure.key,
                          *options, code=2 if bundle == "key.json.canary" else 1)
    assert time.monotonic() - started < CLEAR_ERROR_SECONDS
    assert "ca_bundle" in json.loads(out)["error"]["message"]
    assert secure.front.calls == []


def test_the_search_finds_what_is_planted(tmp_path):
    for number, word in enumerate(canary.canaries()):
        (tmp_path / f"{number}.log").write_bytes(b"before " + word + b" after")
    canary.write_own(tmp_path, "own", canary.TOKEN)
    found = canary.found_below(tmp_path)
    for path in tmp_path.glob("*.log"):
        path.unlink()
    assert len(found) == len(canary.canaries()) > 20
    with pytest.raises(AssertionError, match="canary"):
        run_headrace("/bin/echo", canary.TOKEN)
