"""The webhook over real TLS: its responses and errors, and that it keeps serving while certificates rotate."""

import asyncio
import contextlib
import io
import json
import ssl
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from cryptography.hazmat.primitives import serialization

from bayplan.enforcing.quota import QuotaLimits
from bayplan.errors import ClusterError, InputError
from bayplan.webhook import certificates, running, serving
from bayplan.webhook.admission_handler import AdmissionHandler, AdmissionSettings
from bayplan.webhook.certificates import CertificateChain, CertificateLifetimes, CertificateRotator, ServerTls
from bayplan.webhook.running import WebhookSettings
from bayplan.webhook.secret_paths import AcceptedPaths
from webhook.admission_reviews import MemoryStore, View, anti, pod, review

DEFAULT = CertificateLifetimes()
NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOSTS = ("127.0.0.1", "bayplan-webhook.bayplan-system.svc")
CLUSTER_WIDE = pod(affinity=anti("zone"))
SEGMENT = "segment-of-these-tests"


class Trust:
    """The CA bundle and the path segment as the API server has them; `bundles` and `segments` are all that it got."""

    def __init__(self):
        self.bundles, self.segments = [], []

    async def inject(self, bundle, segment=SEGMENT):
        self.bundles.append(bundle)
        self.segments.append(segment)

    def context(self):
        return ssl.create_default_context(cadata=self.bundles[-1].decode())


@contextlib.asynccontextmanager
async def serve(on_review=None, now=None, lifetimes=DEFAULT, handler=None):
    """Serve a webhook on a free port; yields the server, its rotator and the trusted bundle."""
    tls, paths, trust = ServerTls(), AcceptedPaths(), Trust()
    rotator = CertificateRotator(HOSTS, MemoryStore(), trust.inject, tls=tls, paths=paths, lifetimes=lifetimes)
    await rotator.rotate(now or datetime.now(UTC))
    endpoint = serving.ReviewEndpoint(handler or AdmissionHandler(AdmissionSettings()), paths, on_review)
    async with serving.WebhookServer(endpoint, tls, "127.0.0.1", 0) as server:
        yield server, rotator, trust


async def post(server, trust, path=serving.PODS, body=None, **how):
    """Return the status and the text of the response to a request on a new connection."""
    data = json.dumps(review(CLUSTER_WIDE)) if body is None else body
    headers = {"Content-Type": "application/json", **how.pop("headers", {})}
    async with (
        aiohttp.ClientSession() as session,
        session.request(
            how.pop("method", "POST"),
            f"https://127.0.0.1:{server.port}/{trust.segments[-1]}{path}",
            data=data,
            headers=headers,
            ssl=trust.context(),
        ) as answer,
    ):
        return answer.status, await answer.text()


async def test_a_review_is_answered_and_observed():
    seen = []
    async with serve(lambda *what: seen.append(what)) as (server, _, trust):
        status, text = await post(server, trust)
    response = json.loads(text)["response"]
    assert (status, response["uid"], response["allowed"]) == (200, "u-1", False)
    ((path, allowed, seconds),) = seen
    assert (path, allowed, seconds > 0) == ("/validate/pods", False, True)


def broken(**changes):
    return json.dumps({**review(CLUSTER_WIDE), **changes})


@pytest.mark.parametrize("how, status, message", [
    ({"body": "{"}, 400, "no AdmissionReview"),
    ({"body": ""}, 400, "no AdmissionReview"),
    ({"body": "[]"}, 400, "no AdmissionReview"),
    ({"body": b"\xff\xfe"}, 400, "no AdmissionReview"),
    ({"body": '{"request":' + "[" * 100_000 + "]" * 100_000 + "}"}, 400, "no AdmissionReview"),
    ({"body": broken(apiVersion="admission.k8s.io/v1beta1")}, 400, "expected admission.k8s.io/v1 AdmissionReview, got admission.k8s.io/v1beta1 AdmissionReview"),
    ({"body": broken(apiVersion="admission.k8s.io/v2")}, 400, "got admission.k8s.io/v2"),
    ({"body": broken(kind="Pod")}, 400, "got admission.k8s.io/v1 Pod"),
    ({"body": "{}"}, 400, "got no apiVersion no kind"),
    ({"body": broken(request=None)}, 400, "without a request"),
    ({"body": broken(request={"uid": "x"})}, 400, "missing required field"),
    ({"body": broken(request={**review(CLUSTER_WIDE)["request"], "uid": 7})}, 400, "Expected `str`, got `int`"),
    ({"body": io.BytesIO(b" " * (serving.MAX_REVIEW_BYTES + 1))}, 413, ""),
    ({"headers": {"Content-Type": "text/plain"}}, 415, "expected application/json"),
    ({"method": "GET"}, 405, ""),
    ({"path": "/validate"}, 404, ""),
    ({"path": "/validate/pods/"}, 404, ""),
    ({"path": "/"}, 404, ""),
])  # fmt: skip
async def test_anything_that_is_not_a_review_is_rejected_and_the_webhook_keeps_serving(how, status, message):
    async with serve() as (server, _, trust):
        found, text = await post(server, trust, **how)
        assert (found, message in text) == (status, True)
        assert (await post(server, trust))[0] == 200


@pytest.mark.parametrize("obj", [None, 7, "pod", [], {"spec": 1}, {"spec": {"affinity": []}}])
async def test_an_invalid_object_is_rejected_in_the_response(obj):
    written_review = review(CLUSTER_WIDE)
    written_review["request"]["object"] = obj
    async with serve() as (server, _, trust):
        status, text = await post(server, trust, body=json.dumps(written_review))
    response = json.loads(text)["response"]
    assert (status, response["allowed"], response["status"]["code"]) == (200, False, 422)


async def test_an_object_nested_too_deeply_is_rejected():
    written_review = review(CLUSTER_WIDE)
    written_review["request"]["object"] = "DEEP"
    body = json.dumps(written_review).replace('"DEEP"', '{"a":' * 50_000 + "1" + "}" * 50_000)
    async with serve() as (server, _, trust):
        status, text = await post(server, trust, body=body)
        assert status == 400 or not json.loads(text)["response"]["allowed"]
        assert (await post(server, trust))[0] == 200


@pytest.mark.parametrize("inside", [b'"zo\xffne"', b"[" * 600 + b"]" * 600, b'{"a":' * 600 + b"1" + b"}" * 600])
@pytest.mark.parametrize("path", [serving.PODS, serving.MUTATE])
async def test_an_object_of_invalid_json_is_rejected_in_the_response(inside, path):
    written_review = review(CLUSTER_WIDE)
    written_review["request"]["object"]["metadata"]["labels"] = {"a": "HERE"}
    body = json.dumps(written_review).encode().replace(b'"HERE"', inside)
    async with serve() as (server, _, trust):
        status, text = await post(server, trust, path=path, body=body)
        response = json.loads(text)["response"]
    # An unreadable object is not mutated; the validation that follows rejects it.
    assert (status, response["allowed"]) == (200, path == serving.MUTATE)
    assert path == serving.MUTATE or response["status"]["code"] == 422


async def test_without_tls_there_is_no_response():
    async with serve() as (server, _, trust):
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                await session.post(
                    f"http://127.0.0.1:{server.port}{serving.PODS}", data=json.dumps(review(CLUSTER_WIDE))
                )
        assert (await post(server, trust))[0] == 200


async def test_a_review_without_the_state_it_needs_is_an_error():
    class Silent(View):
        async def pending(self, namespace):
            raise ClusterError("the API server is away")

    limits = QuotaLimits({"shop": (("cpu", 1),)})
    async with serve(handler=AdmissionHandler(AdmissionSettings(), Silent(limits=limits))) as (server, _, trust):
        body = json.dumps(review(pod(affinity=anti("kubernetes.io/hostname"))))
        assert await post(server, trust, body=body) == (503, "the API server is away\n")
        assert (await post(server, trust))[0] == 200


async def test_readyz_answers():
    async with serve() as (server, _, trust):
        url = f"https://127.0.0.1:{server.port}/readyz"
        async with aiohttp.ClientSession() as session, session.get(url, ssl=trust.context()) as answer:
            assert (answer.status, await answer.text()) == (200, "ok\n")


# Certificates


LIFETIMES = CertificateLifetimes(authority=90 * HOUR, serving=30 * HOUR, segment=900 * HOUR, settling=HOUR)


def after(stored, hours):
    return certificates.renewed(stored, HOSTS, NOW + hours * HOUR, LIFETIMES)


def test_nothing_is_renewed_before_it_is_due():
    first = after(None, 0)
    assert len(first.authorities) == 1
    assert after(first, 0) == after(first, 19) == first


def test_the_serving_certificate_is_renewed_after_two_thirds_of_its_lifetime():
    first = after(None, 0)
    second = after(first, 20)
    assert second.authorities == first.authorities
    assert second.serving != first.serving
    assert certificates.is_signed_by(second.serving, first.authorities[0])


def test_an_authority_is_injected_before_it_signs_and_the_old_one_is_dropped_later():
    first = after(after(None, 0), 59)
    injected = after(first, 60)  # two thirds of its lifetime have passed
    assert injected.authorities[:-1] == first.authorities
    assert injected.bundle == first.bundle + injected.authorities[1].certificate
    assert injected.serving == first.serving
    settled = after(injected, 61)  # every API server has seen it
    assert settled.authorities == injected.authorities
    assert certificates.is_signed_by(settled.serving, settled.authorities[1])
    assert after(settled, 61.5) == settled
    assert after(settled, 62).authorities == settled.authorities[1:]
    assert after(settled, 62).serving == settled.serving


def test_after_a_long_downtime_everything_is_renewed():
    first = after(None, 0)
    new = after(first, 1000)
    assert not set(new.authorities) & set(first.authorities)
    assert certificates.is_signed_by(new.serving, new.authorities[0])


def test_a_certificate_never_outlives_its_authority():
    chain = after(after(None, 0), 59)
    assert chain.serving.read().not_valid_after_utc <= chain.authorities[0].read().not_valid_after_utc


def test_other_hosts_need_another_certificate():
    first = after(None, 0)
    moved = certificates.renewed(first, ("elsewhere",), NOW, LIFETIMES)
    assert certificates.subject_names(moved.serving) == {"elsewhere"}
    assert moved.authorities == first.authorities


async def test_no_request_is_rejected_while_certificates_rotate():
    """Clients trust the bundle of one step ago or the current one, and use old connections or new ones."""
    start, minute = datetime.now(UTC), timedelta(minutes=1)
    lifetimes = CertificateLifetimes(authority=30 * minute, serving=10 * minute, settling=minute)
    served = set()
    async with serve(now=start, lifetimes=lifetimes) as (server, rotator, trust), aiohttp.ClientSession() as session:
        address, written_review = f"https://127.0.0.1:{server.port}", json.dumps(review(CLUSTER_WIDE))
        how = {"data": written_review, "headers": {"Content-Type": "application/json"}}
        for step in range(100):
            before, segment_before = trust.context(), trust.segments[-1]
            await rotator.rotate(start + step * minute / 2)
            served.add(rotator._loaded)
            for context, segment in ((before, segment_before), (trust.context(), trust.segments[-1])):
                url = f"{address}/{segment}{serving.PODS}"
                async with session.post(url, ssl=context, **how) as stored:
                    assert stored.status == 200
                async with aiohttp.ClientSession() as fresh, fresh.post(url, ssl=context, **how) as answer:
                    assert answer.status == 200
    assert len(dict.fromkeys(trust.bundles)) == 5  # an authority, two, the second, two, the third
    assert len(served) > 5
    assert len(set(trust.segments)) > 5


async def test_replicas_serve_the_same_certificate():
    store, trust = MemoryStore(), Trust()
    first, second = (CertificateRotator(HOSTS, store, trust.inject) for _ in range(2))
    await first.rotate(NOW)
    await second.rotate(NOW)
    assert first._loaded == second._loaded
    assert len(set(trust.bundles)) == 1


async def test_a_replica_that_loses_the_race_adopts_the_stored_chain():
    class Race(MemoryStore):
        """Another replica saves between our load and our save."""

        async def save(self, chain: CertificateChain, instead_of: CertificateChain | None) -> bool:
            if self._chain is None:
                await super().save(certificates.renewed(None, HOSTS, NOW, CertificateLifetimes()), None)
            return await super().save(chain, instead_of)

    store, trust = Race(), Trust()
    rotator = CertificateRotator(HOSTS, store, trust.inject)
    await rotator.rotate(NOW)
    assert rotator._loaded == (await store.load()).serving


async def test_no_certificate_is_served_before_its_authority_is_injected():
    async def refuse(_bundle, _segment):
        raise ClusterError("the API server is away")

    rotator = CertificateRotator(HOSTS, MemoryStore(), refuse)
    with pytest.raises(ClusterError):
        await rotator.rotate(NOW)
    assert rotator._loaded is None


async def test_a_failing_api_server_does_not_end_the_rotation():
    calls = []

    async def refuse(bundle, _segment):
        calls.append(bundle)
        raise ClusterError("away")

    errors = asyncio.Queue()
    rotator = CertificateRotator(HOSTS, MemoryStore(), refuse, lifetimes=CertificateLifetimes(settling=timedelta()))
    running = asyncio.create_task(rotator.run(errors.put_nowait))
    assert [str(await errors.get()) for _ in range(2)] == ["away", "away"]
    running.cancel()


# Certificates from files


def write_files(folder, chain):
    (folder / "tls.crt").write_bytes(chain.serving.certificate)
    (folder / "tls.key").write_bytes(chain.serving.key)
    (folder / "paths").write_text(f"{SEGMENT}\n")


async def test_files_are_reloaded_when_they_change(tmp_path):
    now = datetime.now(UTC)
    first, second = (certificates.renewed(None, HOSTS, now, CertificateLifetimes()) for _ in range(2))
    write_files(tmp_path, first)
    tls, trust = ServerTls(), Trust()
    files = certificates.CertificateFiles(tls, str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))
    assert files.reload()
    assert not files.reload()
    endpoint = serving.ReviewEndpoint(AdmissionHandler(AdmissionSettings()), AcceptedPaths([SEGMENT]))
    async with serving.WebhookServer(endpoint, tls, "127.0.0.1", 0) as server:
        await trust.inject(first.bundle)
        assert (await post(server, trust))[0] == 200
        (tmp_path / "tls.crt").write_bytes(second.serving.certificate)  # half a change
        with pytest.raises(InputError, match=r"tls.crt: no certificate chain with its key in .*tls.key"):
            files.reload()
        assert (await post(server, trust))[0] == 200
        write_files(tmp_path, second)
        assert files.reload()
        await trust.inject(second.bundle)
        assert (await post(server, trust))[0] == 200


async def test_unusable_files_are_reported(tmp_path):
    files = certificates.CertificateFiles(ServerTls(), str(tmp_path / "none.crt"), str(tmp_path / "none.key"))
    with pytest.raises(InputError, match=r"none.crt: cannot be read: No such file or directory"):
        files.reload()
    errors = asyncio.Queue()
    running = asyncio.create_task(files.run(errors.put_nowait, every=0))
    assert "cannot be read" in str(await errors.get())
    running.cancel()


def test_a_key_with_a_passphrase_is_reported_without_a_prompt(tmp_path):
    chain = certificates.renewed(None, HOSTS, datetime.now(UTC), CertificateLifetimes())
    write_files(tmp_path, chain)
    key = serialization.load_pem_private_key(chain.serving.key, None)
    locked = serialization.BestAvailableEncryption(b"secret")
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    (tmp_path / "tls.key").write_bytes(pem)
    files = certificates.CertificateFiles(ServerTls(), str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))
    with pytest.raises(InputError, match=r"tls.crt: no certificate chain with its key in .*tls.key"):
        files.reload()


# The whole webhook


async def test_a_webhook_with_certificates_from_files_needs_no_api_server(tmp_path):
    chain = certificates.renewed(None, HOSTS, datetime.now(UTC), DEFAULT)
    write_files(tmp_path, chain)
    trust, errors = Trust(), []
    await trust.inject(chain.bundle)
    files = {"certificate": str(tmp_path / "tls.crt"), "key": str(tmp_path / "tls.key")}
    files["path_file"] = str(tmp_path / "paths")
    async with running.serve(WebhookSettings(host="127.0.0.1", port=0, **files), None, errors.append) as server:
        assert (await post(server, trust))[0] == 200
        taken = WebhookSettings(host="127.0.0.1", port=server.port, **files)
        with pytest.raises(InputError, match="the webhook cannot listen on"):
            async with running.serve(taken, None, errors.append):
                pass
    assert errors == []


@pytest.mark.parametrize("files, message", [
    ({"certificate": "tls.crt"}, "belong together"),
    ({"key": "tls.key"}, "belong together"),
    ({}, "without one, give a certificate and a key"),
    ({"certificate": "no/tls.crt", "key": "no/tls.key"}, "could not tell its API server from other clients"),
    ({"certificate": "no/tls.crt", "key": "no/tls.key", "path_file": "no/paths"}, "no/tls.crt: cannot be read"),
    ({"path_file": "paths"}, "belongs to a certificate and a key in files"),
    ({"client_names": ("kube-apiserver",)}, "names of client certificates need the CA"),
    ({"client_ca": "no/ca.crt"}, "no/ca.crt: cannot be read"),
])  # fmt: skip
async def test_incomplete_certificate_settings_are_rejected(files, message):
    with pytest.raises(InputError, match=message):
        async with running.serve(WebhookSettings(**files), None, print):
            pass
