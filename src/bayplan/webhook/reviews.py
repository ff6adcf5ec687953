"""The wire format of admission.k8s.io/v1, requests and responses. Knows nothing of the reviewed objects."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from bayplan.errors import InputError
from bayplan.validating.fields import Cause
from bayplan.wire.meta import WireObject

API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"
CREATE, UPDATE = "CREATE", "UPDATE"
NO_OBJECT = msgspec.Raw(b"null")

# HTTP codes, each with its reason in a Status.
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
    """`object` and `old_object` stay encoded until their type is known; `NO_OBJECT` if there is none."""

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
    Allowed, or rejected with an HTTP code and a message; in both cases with warnings.

    `causes` name the invalid fields, if any. `patch` holds the operations of a JSON patch, if allowed.
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
    """Return the request of a review; InputError for anything that is not a review of this version."""
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


def write_response(uid: str, response: AdmissionResponse) -> bytes:
    """Return the encoded review that answers the request with this uid."""
    body: dict[str, Any] = {"uid": uid, "allowed": response.allowed}
    if not response.allowed:
        body["status"] = _status(response)
    if response.warnings:
        body["warnings"] = list(response.warnings)
    if response.patch:
        body["patchType"] = "JSONPatch"
        body["patch"] = base64.b64encode(_encode(response.patch)).decode()
    return _encode({"apiVersion": API_VERSION, "kind": KIND, "response": body})


def _status(response: AdmissionResponse) -> dict[str, Any]:
    status = {"code": response.code, "reason": _REASONS[response.code], "message": response.message}
    return {**status, "details": {"causes": response.causes}} if response.causes else status
