"""The OpenSearch domain that holds vectors, or the existing endpoint that a deployment names."""

from __future__ import annotations

from aws_cdk import CfnOutput, RemovalPolicy, SecretValue, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_opensearchservice as opensearch
from constructs import Construct

from .configuration import Configuration
from .function import MemoryFunction, log_group
from .suppressions import accept, accept_wildcard

HTTP_ACTIONS = ("es:ESHttpDelete", "es:ESHttpGet", "es:ESHttpHead", "es:ESHttpPost", "es:ESHttpPut")


class SearchDomain(Construct):
    """Where the index is. With `index=embedded` there is none, and a grant only tells the function so."""

    def __init__(self, scope: Construct, id: str, configuration: Configuration) -> None:
        super().__init__(scope, id)
        self._configuration = configuration
        self.url = configuration.opensearch_url
        self.arn = configuration.opensearch_arn
        self._own: opensearch.Domain | None = None
        if configuration.index == "opensearch" and not configuration.opensearch_url:
            self._own = self._domain(configuration)
            self.url = f"https://{self._own.domain_endpoint}"
            self.arn = self._own.domain_arn
            CfnOutput(self, "Endpoint", value=self.url)

    def grant(self, function: MemoryFunction) -> None:
        """Let a function read and write indexes."""
        chosen = self._configuration
        function.setting("index", chosen.index)
        if chosen.index == "embedded":
            return
        function.setting("opensearch_url", self.url)
        if self._own:
            # A replica needs a second node; without one the cluster would stay yellow for ever.
            function.setting("opensearch_replicas", str(min(chosen.domain_nodes - 1, 1)))
        function.setting("opensearch_auth", "sigv4" if self._own else chosen.opensearch_auth)
        if chosen.opensearch_auth == "basic" and chosen.opensearch_secret:
            for setting, field in (("opensearch_user", "username"), ("opensearch_password", "password")):
                secret = SecretValue.secrets_manager(chosen.opensearch_secret, json_field=field)
                function.setting(setting, secret.unsafe_unwrap())
        elif self.arn:
            function.add_to_role_policy(iam.PolicyStatement(actions=list(HTTP_ACTIONS), resources=[self.arn, f"{self.arn}/*"]))
            reason = "Index names follow from the models in use; the domain is there for this service"
            if self._own:
                accept_wildcard(function.execution_role, self._own, "/*", reason)
            else:
                accept(function.execution_role, f"IAM5[Resource::{self.arn}/*]", reason)

    def _domain(self, configuration: Configuration) -> opensearch.Domain:
        nodes = configuration.domain_nodes
        slow, application = (log_group(self, name, configuration) for name in ("SlowLog", "ApplicationLog"))
        allowed = logs.CfnResourcePolicy(
            self,
            "LogPolicy",
            policy_name=f"{Stack.of(self).stack_name}-opensearch-logs",
            policy_document=Stack.of(self).to_json_string(
                iam.PolicyDocument(
                    statements=[
                        iam.PolicyStatement(
                            principals=[iam.ServicePrincipal("es.amazonaws.com")],  # type: ignore[list-item]
                            actions=["logs:CreateLogStream", "logs:PutLogEvents"],
                            resources=[slow.log_group_arn, application.log_group_arn],
                            conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
                        )
                    ]
                ).to_json()
            ),
        )
        domain = opensearch.Domain(
            self,
            "Domain",
            version=opensearch.EngineVersion.OPENSEARCH_2_19,
            capacity=opensearch.CapacityConfig(
                data_nodes=nodes,
                data_node_instance_type=configuration.domain_instance_type,
                multi_az_with_standby_enabled=False,
            ),
            ebs=opensearch.EbsOptions(volume_size=configuration.domain_volume_gib, volume_type=ec2.EbsDeviceVolumeType.GP3),
            zone_awareness=opensearch.ZoneAwarenessConfig(enabled=nodes > 1, availability_zone_count=2) if nodes > 1 else None,
            encryption_at_rest=opensearch.EncryptionAtRestOptions(enabled=True),
            node_to_node_encryption=True,
            enforce_https=True,
            tls_security_policy=opensearch.TLSSecurityPolicy.TLS_1_2_PFS,
            logging=opensearch.LoggingOptions(
                slow_search_log_enabled=True,
                slow_search_log_group=slow,
                slow_index_log_enabled=True,
                slow_index_log_group=slow,
                app_log_enabled=True,
                app_log_group=application,
            ),
            # The CDK's own policy is a custom resource, a function with wildcards; ours is the plain resource above.
            suppress_logs_resource_policy=True,
            removal_policy=RemovalPolicy.RETAIN if configuration.removal == "retain" else RemovalPolicy.DESTROY,
        )
        domain.node.add_dependency(allowed)
        accept(
            domain,
            "OS1",
            "Signed requests over TLS, no open access policy; a VPC would put every function behind a NAT",
        )
        accept(domain, "OS3", "Without an access policy only roles of this account with an explicit grant get in")
        accept(
            domain,
            "OS4",
            "Dedicated managers pay off from about ten data nodes; the index can be rebuilt from the table",
        )
        accept(domain, "OS5", "There is no access policy: anonymous requests are refused")
        if nodes == 1:
            accept(domain, "OS7", "One node was chosen; the index can be rebuilt from the table")
        return domain
