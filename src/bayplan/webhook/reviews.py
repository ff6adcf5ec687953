"""admission.k8s.io/v1 as it goes over the wire, in both directions. Knows nothing of what is reviewed."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from bayplan.errors import InputError
from bayplan.validating.causes import Cause
from bayplan.wire.meta import WireObject

API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"
CREATE, UPDATE = "CREATE", "UPDATE"
NO_OBJECT = msgspec.Raw(b"null")

# HTTP codes, each with the reason that a Status has for it.
FORBIDDEN, CONFLICT, INVALID = 403, 409, 422
_REASONS = {FORBIDDEN: "Forbidden", CONFLICT: "Conflict", INVALID: "Invalid"}


class GroupVersionKind(WireObject):
    group: str = ""
    version: str = ""
    kind: str = ""


class GroupVersionResource(WireObject):
    group: str = ""
    version: str = ""
    resource: str = ""


class UserInfo(WireObject):
    username: str = ""
    groups: list[str] | None = None


class AdmissionRequest(WireObject):
    """`object` and `old_object` stay bytes until somebody knows what they are; `NOTHING` where there is none."""

    uid: str
    kind: GroupVersionKind
    resource: GroupVersionResource
    operation: str
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: UserInfo = msgspec.field(default_factory=UserInfo)
    object: msgspec.Raw = NO_OBJECT
    old_object: msgspec.Raw = NO_OBJECT
    dry_run: bool | None = None


class _Review(WireObject):
    api_version: str = ""
    kind: str = ""
    request: AdmissionRequest | None = None


class AdmissionResponse(msgspec.Struct, frozen=True):
    """
    Yes, or no with an HTTP code and a message, and in both cases warnings.

    `causes` say which fields are at fault, where any are. `patch` are the operations of a JSON patch, for a yes.
    """

    code: int = 0
    message: str = ""
    causes: Sequence[Cause] = ()
    warnings: Sequence[str] = ()
    patch: Sequence[dict[str, Any]] = ()

    @property
    def allowed(self) -> bool:
        return self.code == 0


ALLOWED = AdmissionResponse()

_decode = msgspec.json.Decoder(_Review).decode
_encode = msgspec.json.Encoder().encode


def read_request(body: bytes) -> AdmissionRequest:
    """The request of a review; raises InputError for whatever is no review of this version."""
    try:
        review = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"no {KIND}: {error}") from None
    except RecursionError:
        raise InputError(f"no {KIND}: nested too deeply") from None
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        got = f"{review.api_version or 'no apiVersion'} {review.kind or 'no kind'}"
        raise InputError(f"expected {API_VERSION} {KIND}, got {got}")
    if review.request is None:
        raise InputError(f"{KIND} without a request")
    return review.request


def write_response(uid: str, answer: AdmissionResponse) -> bytes:
    """The review that answers the request of this uid."""
    response: dict[str, Any] = {"uid": uid, "allowed": answer.allowed}
    if not answer.allowed:
        response["status"] = _status(answer)
    if answer.warnings:
        response["warnings"] = list(answer.warnings)
    if answer.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(_encode(answer.patch)).decode()
    return _encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _status(answer: AdmissionResponse) -> dict[str, Any]:
    status = {"code": answer.code, "reason": _REASONS[answer.code], "message": answer.message}
    return {**status, "details": {"causes": answer.causes}} if answer.causes else status
