"""Karmada's configuration of its resource interpreter: scripts in Lua for kinds, and webhooks."""

from __future__ import annotations

import msgspec

from bayplan.wire.meta import ApiObject, WireObject


class LuaRule(WireObject):
    lua_script: str = ""


class CustomizationRules(WireObject):
    """The rules that decide how a template is scheduled; the others are not read."""

    replica_resource: LuaRule | None = None
    component_resource: LuaRule | None = None


class CustomizationTarget(WireObject):
    api_version: str = ""
    kind: str = ""


class CustomizationSpec(WireObject):
    target: CustomizationTarget = msgspec.field(default_factory=CustomizationTarget)
    customizations: CustomizationRules = msgspec.field(default_factory=CustomizationRules)


class ResourceInterpreterCustomization(ApiObject):
    spec: CustomizationSpec = msgspec.field(default_factory=CustomizationSpec)


class InterpreterRule(WireObject):
    operations: list[str] | None = None
    api_groups: list[str] | None = None
    api_versions: list[str] | None = None
    kinds: list[str] | None = None


class InterpreterWebhook(WireObject):
    name: str = ""
    rules: list[InterpreterRule] | None = None


class ResourceInterpreterWebhookConfiguration(ApiObject):
    webhooks: list[InterpreterWebhook] | None = None
