"""The search domain, and the endpoints that may stand in for it."""

from __future__ import annotations

from collections.abc import Callable

from tests.infrastructure.assembly import Synthesised

DOMAIN = "AWS::OpenSearchService::Domain"
URL = "https://search.example.com"
ARN = "arn:aws:es:eu-central-1:111122223333:domain/theirs"


def test_domain_is_encrypted_and_speaks_tls_alone(stack: Synthesised) -> None:
    domain = stack.one(DOMAIN)
    assert domain["EncryptionAtRestOptions"]["Enabled"] is True
    assert domain["NodeToNodeEncryptionOptions"] == {"Enabled": True}
    assert domain["DomainEndpointOptions"]["EnforceHTTPS"] is True
    assert domain["EngineVersion"] == "OpenSearch_2.19"
    assert "AccessPolicies" not in domain, "an access policy could let in whom no role was granted"


def test_two_nodes_lie_in_two_zones_and_carry_a_replica(stack: Synthesised) -> None:
    cluster = stack.one(DOMAIN)["ClusterConfig"]
    assert (cluster["InstanceCount"], cluster["ZoneAwarenessEnabled"]) == (2, True)
    assert stack.variables("ingest")["MEMORY_BANKS_OPENSEARCH_REPLICAS"] == "1"


def test_one_node_asks_for_no_replica(synthesise: Callable[..., Synthesised]) -> None:
    small = synthesise(domain_nodes="1", domain_instance_type="t3.small.search")
    assert small.one(DOMAIN)["ClusterConfig"]["InstanceType"] == "t3.small.search"
    assert small.variables("ingest")["MEMORY_BANKS_OPENSEARCH_REPLICAS"] == "0"


def test_existing_endpoint_takes_the_place_of_a_domain(synthesise: Callable[..., Synthesised]) -> None:
    theirs = synthesise(opensearch_url=URL, opensearch_arn=ARN)
    assert not theirs.of(DOMAIN)
    assert theirs.variables("api")["MEMORY_BANKS_OPENSEARCH_URL"] == URL
    (granted,) = [s for s in theirs.statements("api") if "es:ESHttpPost" in s["Action"]]
    assert granted["Resource"] == [ARN, f"{ARN}/*"]


def test_basic_sign_in_takes_user_and_password_from_a_secret(synthesise: Callable[..., Synthesised]) -> None:
    theirs = synthesise(opensearch_url=URL, opensearch_auth="basic", opensearch_secret="search")
    told = theirs.variables("sweep")
    assert told["MEMORY_BANKS_OPENSEARCH_AUTH"] == "basic"
    assert told["MEMORY_BANKS_OPENSEARCH_USER"] == "{{resolve:secretsmanager:search:SecretString:username::}}"
    assert told["MEMORY_BANKS_OPENSEARCH_PASSWORD"] == "{{resolve:secretsmanager:search:SecretString:password::}}"
    assert not any(action.startswith("es:") for action in theirs.actions("sweep"))


def test_embedded_index_has_no_domain_and_no_grant(synthesise: Callable[..., Synthesised]) -> None:
    embedded = synthesise(index="embedded")
    assert not embedded.of(DOMAIN)
    assert embedded.variables("ingest")["MEMORY_BANKS_INDEX"] == "embedded"
    assert not any(action.startswith("es:") for action in embedded.actions("ingest"))
