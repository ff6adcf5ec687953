"""Requests that are not from the API server of the webhook, and more of them than it can answer."""

import asyncio
import contextlib
import json
import logging
import ssl
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
import trustme

from bayplan.enforcing.quota import QuotaLimits
from bayplan.errors import InputError
from bayplan.serving.limited_server import ServerLimits
from bayplan.webhook import certificates, running, secret_paths, serving
from bayplan.webhook.admission_handler import AdmissionHandler, AdmissionSettings
from bayplan.webhook.certificates import CertificateLifetimes, ServerTls
from bayplan.webhook.running import WebhookSettings
from bayplan.webhook.secret_paths import AcceptedPaths, PathFile
from bayplan.webhook.serving import ReviewEndpoint, ReviewLimits, WebhookServer
from webhook.admission_reviews import View, anti, pod, review

HOSTNAME = "kubernetes.io/hostname"
SECRET = "the-segment-of-the-api-server"
HOUR = timedelta(hours=1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
JSON = {"Content-Type": "application/json"}
CHAIN = certificates.renewed(None, ["127.0.0.1"], datetime.now(UTC), CertificateLifetimes())


def endpoint(handler=None, segments=(SECRET,), **how):
    return ReviewEndpoint(handler or AdmissionHandler(AdmissionSettings()), AcceptedPaths(segments), **how)


def server_of(found, tls=None, **limits):
    tls = tls or ServerTls()
    tls.load(CHAIN.serving)
    more = ServerLimits(**{"connections": 100, "idle_seconds": 60.0, **limits})
    return WebhookServer(found, tls, "127.0.0.1", 0, more)


def trusting(*, client=None):
    context = ssl.create_default_context(cadata=CHAIN.bundle.decode())
    if client is not None:
        client.configure_cert(context)
    return context


async def status(server, path, body=None, context=None):
    data = json.dumps(review(pod(affinity=anti("zone")))) if body is None else body
    url = f"https://127.0.0.1:{server.port}{path}"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=data, headers=JSON, ssl=context or trusting()) as answer,
    ):
        return answer.status


async def sent(server, head, body=b""):
    """The response to a request of which no more than this is sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting())
    with contextlib.closing(writer):
        writer.write(head.replace("\n", "\r\n").encode() + body)
        return await reader.read()  # to the end: the connection is closed


async def test_forged_reviews_use_up_no_quota_and_reserve_no_node():
    view = View(limits=QuotaLimits({"shop": (("cpu", 8000),)}))
    found = endpoint(AdmissionHandler(AdmissionSettings(), view))
    async with server_of(found) as server:
        for i in range(10):
            forged = json.dumps(review(pod(f"forged-{i}", affinity=anti(HOSTNAME), node="n1")))
            for path in (serving.PODS, f"/wrong{serving.PODS}", f"/{SECRET}x{serving.PODS}"):
                assert await status(server, path, forged) == 404
        real = json.dumps(review(pod("real", affinity=anti(HOSTNAME), node="n1")))
        async with aiohttp.ClientSession() as session:
            url = f"https://127.0.0.1:{server.port}/{SECRET}{serving.PODS}"
            async with session.post(url, data=real, headers=JSON, ssl=trusting()) as answer:
                assert (await answer.json())["response"]["allowed"]
    assert found.refused == {"path": 30}


@pytest.mark.parametrize("path", ["/", "", "/readyz/x", f"/{SECRET}", f"/{SECRET}/", f"/{SECRET}/validate", f"//{SECRET}/mutate", f"/{SECRET}/x/mutate", "/mutate", f"/{SECRET.upper()}/mutate", "/%00/mutate", "/ü/mutate"])  # fmt: skip
async def test_every_other_path_is_answered_by_404(path):
    async with server_of(endpoint()) as server:
        assert await status(server, path) == 404


async def test_the_body_of_a_forged_review_is_not_read():
    head = "POST /forged/validate/pods HTTP/1.1\nHost: x\nContent-Type: application/json\nContent-Length: 7000000\n\n"
    async with server_of(endpoint()) as server:
        assert (await sent(server, head)).startswith(b"HTTP/1.1 404")


async def test_a_body_that_does_not_arrive_ends_the_request():
    found = endpoint(limits=ReviewLimits(body_seconds=0.05))
    head = f"POST /{SECRET}/mutate HTTP/1.1\nHost: x\nContent-Type: application/json\nContent-Length: 700\n\n"
    async with server_of(found) as server:
        assert (await sent(server, head, b"{")).startswith(b"HTTP/1.1 408")
        assert await status(server, f"/{SECRET}{serving.PODS}") == 200


async def test_connections_without_a_handshake_do_not_keep_the_api_server_out():
    async with server_of(endpoint(), connections=4, request_seconds=60.0) as server:
        idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(50)]
        assert await status(server, f"/{SECRET}{serving.PODS}") == 200
        assert server.server.connections <= 4
        for _, writer in idle:
            writer.close()


async def test_the_secret_is_never_logged(caplog):
    caplog.set_level(logging.DEBUG)
    async with server_of(endpoint()) as server:
        for path, body in ((serving.PODS, "{"), (serving.PODS, "\x00"), ("/no", None), (serving.MUTATE, None)):
            await status(server, f"/{SECRET}{path}", body)
    ours = [record for record in caplog.records if not record.name.startswith(("asyncio", "aiohttp.client"))]
    assert SECRET not in "\n".join(record.getMessage() for record in ours)


# Overload


class Slow(View):
    """A view that answers when it is told to."""

    def __init__(self):
        super().__init__(limits=QuotaLimits({"shop": (("cpu", 10**6),)}))
        self.asked, self.go_on = asyncio.Semaphore(0), asyncio.Event()

    async def pending(self, _namespace):
        self.asked.release()
        await self.go_on.wait()
        return []


@pytest.mark.parametrize("limits, cause", [
    (ReviewLimits(at_once=1), "reviews"),
    (ReviewLimits(bytes_at_once=1000), "bytes"),
    (ReviewLimits(review_seconds=0.05), "time"),
])  # fmt: skip
async def test_reviews_beyond_a_limit_are_shed_by_an_error_and_counted(limits, cause):
    view = Slow()
    found = endpoint(AdmissionHandler(AdmissionSettings(), view), limits=limits)
    charged = json.dumps(review(pod(affinity=anti(HOSTNAME))))
    async with server_of(found) as server:
        first = asyncio.create_task(status(server, f"/{SECRET}{serving.PODS}", charged))
        await view.asked.acquire()
        if cause == "time":
            assert await first == 503
        else:
            assert await status(server, f"/{SECRET}{serving.PODS}", charged) == 503
        assert found.shed == {cause: 1}
        view.go_on.set()
        assert await first == (503 if cause == "time" else 200)
        assert await status(server, f"/{SECRET}{serving.PODS}", charged) == 200


# Client certificates


@pytest.mark.parametrize("names, served", [((), 200), (("kube-apiserver",), 200), (("other",), 403)])
async def test_only_clients_with_a_certificate_of_the_authority_and_an_allowed_name_are_served(names, served):
    authority, other = trustme.CA(), trustme.CA()
    tls = ServerTls(authority.cert_pem.bytes().decode())
    async with server_of(endpoint(segments=[""], client_names=names), tls) as server:
        real = authority.issue_cert(common_name="kube-apiserver")
        assert await status(server, serving.PODS, context=trusting(client=real)) == served
        for context in (trusting(), trusting(client=other.issue_cert(common_name="kube-apiserver"))):
            with pytest.raises(aiohttp.ClientError):
                await status(server, serving.PODS, context=context)


async def test_a_client_certificate_alone_does_not_replace_the_path_where_there_is_one():
    authority = trustme.CA()
    tls = ServerTls(authority.cert_pem.bytes().decode())
    async with server_of(endpoint(), tls) as server:
        context = trusting(client=authority.issue_cert(common_name="kube-apiserver"))
        assert await status(server, serving.PODS, context=context) == 404
        assert await status(server, f"/{SECRET}{serving.PODS}", context=context) == 200


# Rotation and files


LIFETIMES = CertificateLifetimes(authority=90 * HOUR, serving=30 * HOUR, segment=900 * HOUR, settling=HOUR)


def after(stored, hours):
    return certificates.renewed(stored, ["127.0.0.1"], NOW + hours * HOUR, LIFETIMES)


def values(chain):
    return [one.value for one in chain.segments]


def used(chain):
    return secret_paths.in_use(chain.segments).value


def test_a_segment_is_accepted_before_it_is_used_and_the_old_one_is_accepted_after():
    first = after(None, 0)
    (old,) = values(first)
    created = after(first, 20)  # with the serving certificate
    assert created.serving != first.serving
    (_, new) = values(created)
    assert (new != old, used(created)) == (True, old)
    in_use = after(created, 21)
    assert (values(in_use), used(in_use)) == ([old, new], new)
    assert after(in_use, 21.5) == in_use
    dropped = after(in_use, 22)
    assert (values(dropped), used(dropped)) == ([new], new)
    assert len(new) == 64  # 256 bits


def test_after_a_downtime_the_old_segment_is_still_accepted_when_the_new_one_is_first_used():
    created = after(after(None, 0), 20)
    old, new = values(created)
    late = after(created, 35)
    assert (values(late)[:2], used(late)) == ([old, new], new)
    assert old not in values(after(late, 36))


def test_a_segment_is_replaced_every_hour():
    """With failurePolicy Fail, API servers show the path of a call that fails on the way to users."""
    minute = timedelta(minutes=1)
    chain = certificates.renewed(None, ["127.0.0.1"], NOW, CertificateLifetimes())
    seen, most = set(), 0
    for minutes in range(0, 24 * 60, 5):
        chain = certificates.renewed(chain, ["127.0.0.1"], NOW + minutes * minute, CertificateLifetimes())
        most = max(most, len(chain.segments))
        seen.add(used(chain))
    assert (len(seen), most) == (24, 2)


def test_a_chain_stored_by_an_earlier_version_gets_a_segment():
    first = after(None, 0)
    old = certificates.CertificateChain(first.authorities, first.serving)
    assert len(values(after(old, 1))) == 1
    assert after(old, 1).serving == first.serving


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "short",
        "UPPER-CASE-LETTERS-ARE-INVALID",
        "has/a/slash/in/its/middle",
        "with spaces between these words",
    ],
)
def test_an_unusable_file_of_segments_is_reported_without_its_content(tmp_path, text):
    (tmp_path / "paths").write_text(text)
    with pytest.raises(InputError, match="expected one or more segments of 16 to 128") as error:
        PathFile(AcceptedPaths(), str(tmp_path / "paths")).reload()
    assert not text.strip() or text.strip() not in str(error.value)


def test_a_file_of_segments_is_read_again_when_it_changes(tmp_path):
    paths, file = AcceptedPaths(), tmp_path / "paths"
    file.write_text(f"{SECRET}-1\n")
    watched = PathFile(paths, str(file))
    watched.reload()
    file.write_text(f"{SECRET}-1\n{SECRET}-2\n")
    watched.reload()
    assert [paths.accepts(f"{SECRET}-{n}") for n in (1, 2, 3)] == [True, True, False]


def test_segments_are_compared_in_constant_time(monkeypatch):
    compared = []
    monkeypatch.setattr(secret_paths.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or a == b)
    assert AcceptedPaths([f"{SECRET}-1", f"{SECRET}-2"]).accepts(f"{SECRET}-1")
    assert len(compared) == 2  # also after a match


async def test_the_webhook_starts_before_its_files_exist_and_serves_when_they_do(tmp_path, monkeypatch):
    monkeypatch.setattr(certificates, "FILE_CHECK_SECONDS", 0.01)
    monkeypatch.setattr(certificates.CertificateFiles.run, "__defaults__", (0.01,))
    files = {"certificate": "tls.crt", "key": "tls.key", "path_file": "paths"}
    settings = WebhookSettings(host="127.0.0.1", port=0, **{name: str(tmp_path / file) for name, file in files.items()})
    errors = []
    async with running.serve(settings, None, errors.append) as server:
        assert "cannot be read" in str(errors[0])
        with pytest.raises(aiohttp.ClientError):
            await status(server, f"/{SECRET}{serving.PODS}")
        (tmp_path / "tls.crt").write_bytes(CHAIN.serving.certificate)
        (tmp_path / "tls.key").write_bytes(CHAIN.serving.key)
        (tmp_path / "paths").write_text(f"{SECRET}\n")

        async def served():
            try:
                return await status(server, f"/{SECRET}{serving.PODS}") == 200
            except aiohttp.ClientError:
                return False

        while not await served():  # noqa: ASYNC110 (the files are read by the clock)
            await asyncio.sleep(0.01)
