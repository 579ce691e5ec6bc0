"""The table that holds the truth, and the bucket for what exceeds an item."""

from __future__ import annotations

from aws_cdk import CfnOutput, Duration, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from .configuration import Configuration
from .function import MemoryFunction
from .suppressions import accept, accept_wildcard

ITEM_ACTIONS = (
    "dynamodb:BatchGetItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
)
"""What the table port does. Transactions need the rights of their actions; nothing ever scans."""


class Storage(Construct):
    """Table and bucket."""

    def __init__(self, scope: Construct, id: str, configuration: Configuration) -> None:
        super().__init__(scope, id)
        keep = configuration.removal == "retain"
        removal = RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY
        text = dynamodb.AttributeType.STRING
        self.table = dynamodb.Table(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name="pk", type=text),
            sort_key=dynamodb.Attribute(name="sk", type=text),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True, recovery_period_in_days=configuration.recovery_days
            ),
            time_to_live_attribute="ttl",
            deletion_protection=keep,
            removal_policy=removal,
        )
        self.table.add_global_secondary_index(
            index_name="due",
            partition_key=dynamodb.Attribute(name="due_pk", type=text),
            sort_key=dynamodb.Attribute(name="due_at", type=dynamodb.AttributeType.NUMBER),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        )
        self.table.add_global_secondary_index(
            index_name="age",
            partition_key=dynamodb.Attribute(name="age_pk", type=text),
            sort_key=dynamodb.Attribute(name="age", type=text),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        )
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            # No versions: a deleted memory must not live on in one.
            versioned=False,
            lifecycle_rules=[
                s3.LifecycleRule(id="parts", abort_incomplete_multipart_upload_after=Duration.days(1)),
                # The sweep removes an export after seven days; this catches what a function that died has left.
                s3.LifecycleRule(id="exports", prefix="exports/", expiration=Duration.days(8)),
            ],
            removal_policy=removal,
        )
        accept(self.bucket, "S1", "Only the functions reach the bucket, and the API's access log says who asked them")
        CfnOutput(self, "TableName", value=self.table.table_name)
        CfnOutput(self, "BucketName", value=self.bucket.bucket_name)

    def grant(self, function: MemoryFunction) -> None:
        """Let a function read and write items and objects."""
        function.setting("table", self.table.table_name)
        function.setting("bucket", self.bucket.bucket_name)
        self._allow(function, ITEM_ACTIONS, [self.table.table_arn])
        self._allow(function, ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"), [self.bucket.arn_for_objects("*")])
        # Without it an object that is not there would answer 403 instead of 404.
        self._allow(function, ("s3:ListBucket",), [self.bucket.bucket_arn])
        accept_wildcard(
            function.execution_role, self.bucket, "/*", "Objects are named by ids that the service makes; the bucket is its own"
        )

    def grant_uploads(self, function: MemoryFunction) -> None:
        """Let a function give up an upload that it has begun."""
        self._allow(function, ("s3:AbortMultipartUpload",), [self.bucket.arn_for_objects("*")])

    def grant_indexes(self, function: MemoryFunction, *names: str) -> None:
        """Let a function ask what is `due`, or what is oldest (`age`)."""
        self._allow(function, ("dynamodb:Query",), [f"{self.table.table_arn}/index/{name}" for name in names])

    def _allow(self, function: MemoryFunction, actions: tuple[str, ...], resources: list[str]) -> None:
        function.add_to_role_policy(iam.PolicyStatement(actions=list(actions), resources=resources))
