"""The options of `run` that only matter for bindings of a Karmada control plane."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import value_types
from bayplan.cli.commands import Option, OptionGroup

if TYPE_CHECKING:
    from bayplan.live.assembly import EstimatorSettings

_HEADING = "Fleets"
CLUSTER = "{cluster}"
DEFAULT_ADDRESS = f"karmada-scheduler-estimator-{CLUSTER}.karmada-system.svc:10352"


class FleetOptions(msgspec.Struct, frozen=True):
    """How workloads fail back, and the accurate estimators."""

    fail_back_per_minute: int
    enable_scheduler_estimator: bool
    scheduler_estimator_address: str
    scheduler_estimator_ca_file: str | None
    scheduler_estimator_cert_file: str | None
    scheduler_estimator_key_file: str | None
    scheduler_estimator_timeout: str

    def estimator(self) -> EstimatorSettings | None:
        """The settings of accurate estimators, None if they are not asked; a usage error if they cannot be."""
        if not self.enable_scheduler_estimator:
            return None
        from bayplan.live.assembly import EstimatorSettings

        wrong = list(self._faults())
        if wrong:
            raise click.UsageError(f"--enable-scheduler-estimator: {'; '.join(wrong)}")
        return EstimatorSettings(
            address=self.scheduler_estimator_address,
            authority=self.scheduler_estimator_ca_file or "",
            certificate=self.scheduler_estimator_cert_file or "",
            key=self.scheduler_estimator_key_file or "",
            timeout=value_types.seconds(self.scheduler_estimator_timeout),
        )

    def _faults(self) -> list[str]:
        client = (self.scheduler_estimator_cert_file, self.scheduler_estimator_key_file)
        checks = (
            (not importlib.util.find_spec("grpc"), "needs the extra `estimator`: pip install bayplan[estimator]"),
            (CLUSTER not in self.scheduler_estimator_address, f"expected {CLUSTER} in --scheduler-estimator-address"),
            (not self.scheduler_estimator_ca_file, "needs --scheduler-estimator-ca-file"),
            (
                (client[0] is None) != (client[1] is None),
                "--scheduler-estimator-cert-file and --scheduler-estimator-key-file go together",
            ),
            (value_types.seconds(self.scheduler_estimator_timeout) <= 0, "expected a time limit above 0"),
        )
        return [text for is_wrong, text in checks if is_wrong]


_FILE = click.Path(exists=True, dir_okay=False)

FLEET = OptionGroup(
    "fleets",
    FleetOptions,
    (
        Option(
            "--fail-back-per-minute",
            type=click.IntRange(min=1),
            default=10,
            show_default=True,
            metavar="N",
            heading=_HEADING,
            help="Let at most N bindings per minute return to an earlier group or tier of clusters, if the switch "
            "failBackAfter is set: --switch failBackAfter=600 lets them return once there was room for ten minutes.",
        ),
        Option(
            "--enable-scheduler-estimator",
            is_flag=True,
            heading=_HEADING,
            help="Ask the accurate estimator of each cluster (karmada-scheduler-estimator) how many more replicas fit. "
            "A cluster whose estimator does not answer is estimated by what it reports. Needs the extra `estimator`.",
        ),
        Option(
            "--scheduler-estimator-address",
            metavar="TEMPLATE",
            default=DEFAULT_ADDRESS,
            show_default=True,
            heading=_HEADING,
            help=f"Address of the estimators; {CLUSTER} stands for the name of the cluster.",
        ),
        Option(
            "--scheduler-estimator-ca-file",
            metavar="FILE",
            type=_FILE,
            heading=_HEADING,
            help="Certificate authority of the estimators.",
        ),
        Option(
            "--scheduler-estimator-cert-file",
            metavar="FILE",
            type=_FILE,
            heading=_HEADING,
            help="Client certificate that is shown to estimators.",
        ),
        Option(
            "--scheduler-estimator-key-file",
            metavar="FILE",
            type=_FILE,
            heading=_HEADING,
            help="Key of the client certificate.",
        ),
        Option(
            "--scheduler-estimator-timeout",
            metavar="TIME",
            type=value_types.Duration(),
            default="3s",
            show_default=True,
            heading=_HEADING,
            help="Time limit for the answer of one estimator.",
        ),
    ),
)
