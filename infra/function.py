"""One Lambda function: its asset, its log and a role that may write that log and nothing else until a resource grants more."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from . import bundling
from .configuration import Configuration
from .layers import Layers, architecture_of, code, runtime_of
from .suppressions import accept

RETENTION = {
    1: logs.RetentionDays.ONE_DAY,
    3: logs.RetentionDays.THREE_DAYS,
    5: logs.RetentionDays.FIVE_DAYS,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    120: logs.RetentionDays.FOUR_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
}


def log_group(scope: Construct, id: str, configuration: Configuration) -> logs.LogGroup:
    """A log that is kept as long as configured, and goes with the stack."""
    return logs.LogGroup(scope, id, retention=RETENTION[configuration.log_days], removal_policy=RemovalPolicy.DESTROY)


class MemoryFunction(lambda_.Function):
    """The function in `functions/<name>`.

    Parameters
    ----------
    timeout
        After which Lambda kills it. A queue that feeds it hides messages six times as long.
    feeds_itself
        Its messages may come back to it through queues. Lambda would end such a chain after 16 hops; the function's own hop
        limit and an alarm watch over it instead.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        configuration: Configuration,
        layers: Layers,
        *,
        name: str,
        description: str,
        timeout: Duration,
        memory_mib: int = 1024,
        feeds_itself: bool = False,
    ) -> None:
        target = configuration.target
        log = log_group(scope, f"{id}Log", configuration)
        role = iam.Role(
            scope,
            f"{id}Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),  # type: ignore[arg-type]
            description=f"What the function {name} may do",
        )
        log.grant_write(role)
        super().__init__(
            scope,
            id,
            description=description,
            runtime=runtime_of(target),
            architecture=architecture_of(target),
            handler=f"functions.{name}.handler.handler",
            code=code(
                bundling.FUNCTIONS / name,
                lambda output: bundling.function(name, target, output),
                bundling.fingerprint(target, name, bundling.FUNCTIONS / name),
            ),
            layers=layers.shared,
            timeout=timeout,
            memory_size=memory_mib,
            log_group=log,
            logging_format=lambda_.LoggingFormat.JSON,
            role=role,  # type: ignore[arg-type]
            environment=dict(configuration.environment),
            recursive_loop=lambda_.RecursiveLoop.ALLOW if feeds_itself else lambda_.RecursiveLoop.TERMINATE,
        )
        self.name = name
        self.execution_role = role
        accept(self, "L1", "The runtime is a setting; its default is the newest that the tests have run on")
        self._chosen = frozenset(configuration.environment)

    def setting(self, name: str, value: str | None) -> None:
        """Tell the function a setting (a field of `Settings`), unless the configuration's `environment` chose otherwise."""
        variable = f"MEMORY_BANKS_{name.upper()}"
        if value is not None and variable not in self._chosen:
            self.add_environment(variable, value)
