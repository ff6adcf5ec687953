"""What a real API server answers to questions of `decide admission`. Nothing is stored: every request is a dry run."""

import asyncio
import atexit
import functools

from live import kube_binaries
from live.admin import Admin, ApiError
from live.kube_server import KubeServer, Options

AT_ONCE = 20


def answers(questions, version):
    """One answer for each question, by the API server of this minor version, which is started once and stopped at the end."""
    return asyncio.run(_answers(_server(version), questions))


async def causes_of(admin, obj):
    """The distinct causes for which the API server rejects an object."""
    try:
        await admin.create(obj, dryRun="All")
    except ApiError as error:
        return {(cause["reason"], cause["field"], cause["message"]) for cause in error.body["details"]["causes"]}
    return set()


@functools.cache
def _server(version):
    kube_binaries.find("kube-apiserver", version)
    server = KubeServer(Options(version=version)).start()
    atexit.register(server.stop)
    return server


async def _answers(server, questions):
    gate = asyncio.Semaphore(AT_ONCE)
    async with Admin.of(server) as admin:

        async def one(question):
            async with gate:
                return await _answer(admin, question)

        return await asyncio.gather(*map(one, questions))


async def _answer(admin, question):
    try:
        found = sorted(await causes_of(admin, question["object"]))
    except (ApiError, KeyError) as refusal:  # not by validation, and so without causes
        return {"name": question["name"], "error": str(refusal)}
    causes = [{"reason": reason, "field": field, "message": message} for reason, field, message in found]
    return {"name": question["name"], "causes": causes}
