"""How a finding of cdk-nag is accepted: on the construct it is about, with the reason."""

from __future__ import annotations

from aws_cdk import Acknowledgment, CfnElement, Resource, Stack, Validations
from constructs import Construct


def accept(construct: Construct, finding: str, reason: str) -> None:
    """Accept a finding (`S1`) of the AWS Solutions pack on a construct and what is inside it."""
    Validations.of(construct).acknowledge(Acknowledgment(id=f"AwsSolutions::AwsSolutions-{finding}", reason=reason))


def accept_wildcard(holder: Construct, resource: Resource, suffix: str, reason: str) -> None:
    """Accept that a role may touch everything under one resource: its ARN followed by `suffix` (`/*`)."""
    element = resource.node.default_child
    assert isinstance(element, CfnElement)
    accept(holder, f"IAM5[Resource::<{Stack.of(resource).get_logical_id(element)}.Arn>{suffix}]", reason)
