"""API keys: who a request comes from and what it may do.

A key is random and kept only as its SHA-256 hash. Two items are written in one transaction, so neither exists without the
other: `KEY#{hash}` is what a request looks up, and one under the account is what lists and revokes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from . import ids
from .clock import iso
from .errors import Forbidden, Invalid, NotFound, Unauthorized
from .ports import ConditionFailed, Delete, Is, Item, Key, Ports, Put
from .remembering import Remembered

Scope = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

REMEMBERED_MILLISECONDS = 60_000
"""A revoked key works at most this long in a process that knows it."""

ACCOUNT = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PREFIX = "mb_"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request comes from."""

    account: str
    scopes: frozenset[str]
    key_id: str
    expires_at: int | None = None
    """Milliseconds; None never."""

    def require(self, scope: Scope) -> None:
        """`Forbidden` unless the key has the scope; `admin` includes the others."""
        if scope not in self.scopes and "admin" not in self.scopes:
            raise Forbidden(f"This API key lacks the scope {scope!r}; it has {', '.join(sorted(self.scopes)) or 'none'}.")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as its owner sees it; the secret itself is nowhere."""

    id: str
    account: str
    name: str
    scopes: tuple[str, ...]
    created_at: int
    expires_at: int | None
    sha256: str

    def shown(self) -> dict[str, Any]:
        """For people; without the hash."""
        return {
            "id": self.id,
            "account": self.account,
            "name": self.name,
            "scopes": list(self.scopes),
            "created_at": iso(self.created_at),
            "expires_at": iso(self.expires_at) if self.expires_at is not None else None,
        }


_callers: Remembered[Caller] = Remembered(REMEMBERED_MILLISECONDS)


def create_key(
    ports: Ports,
    account: str,
    *,
    scopes: Sequence[str] = ("read", "write"),
    name: str = "",
    expires_at: int | None = None,
    secret: str | None = None,
) -> tuple[ApiKey, str]:
    """Make a key and give it with its secret, which can't be shown again.

    Parameters
    ----------
    account: str
        The tenant, `[A-Za-z0-9._-]{1,64}`; it exists as soon as it has a key.
    scopes: Sequence[str]
        Of `read`, `write` and `admin` (which includes the others).
    expires_at: int | None
        Milliseconds; None never.
    secret: str | None
        A secret of one's own (a local server's); random by default. Given again, it replaces what was there.

    Raises
    ------
    Invalid
        For a wrong account, unknown scopes, or none.
    """
    if not ACCOUNT.fullmatch(account):
        raise Invalid(("account",), "an account has 1 to 64 characters of A-Z, a-z, 0-9, '.', '_' and '-'")
    if not scopes or not set(scopes) <= set(SCOPES):
        raise Invalid(("scopes",), f"scopes are one or more of {', '.join(SCOPES)}")
    if secret is not None and not secret.strip():
        raise Invalid(("secret",), "must not be blank")
    now = ports.clock.now()
    secret = secret or _PREFIX + base64.urlsafe_b64encode(ports.chance.getrandbits(256).to_bytes(32, "big")).rstrip(b"=").decode()
    key = ApiKey(
        id=ids.ulids(now, ids.LOWEST, 1, ports.chance)[0],
        account=account,
        name=name,
        scopes=tuple(scope for scope in SCOPES if scope in scopes),
        created_at=now,
        expires_at=expires_at,
        sha256=_hash(secret),
    )
    ports.table.transact([Put(_to_item(key, _lookup(key.sha256))), Put(_to_item(key, _listed(account, key.id)))])
    _callers.forget(ports.table, key.sha256)
    return key, secret


def list_keys(ports: Ports, account: str) -> list[ApiKey]:
    """The account's keys, oldest first, expired ones included."""
    found: list[ApiKey] = []
    after = "KEY#"
    while True:
        page = ports.table.query(f"ACCOUNT#{account}", after=after, before="KEY$")
        found += [_from_item(item) for item in page.items]
        if page.after is None:
            return found
        after = page.after


def revoke_key(ports: Ports, account: str, key_id: str) -> None:
    """Make a key useless: at once for who does not know it yet, within a minute everywhere. `NotFound` when there is none."""
    item = ports.table.read([_listed(account, key_id)])[0]
    if item is None:
        raise NotFound(f"There is no API key {key_id}.")
    key = _from_item(item)
    # The lookup item may meanwhile belong to a newer key made with the same secret; that one stays.
    current = ports.table.read([_lookup(key.sha256)])[0]
    gone = [Delete(_listed(account, key_id))]
    if current is not None and current["id"] == key_id:
        gone.append(Delete(_lookup(key.sha256), when=(Is("id", "=", key_id),)))
    try:
        ports.table.transact(gone)
    except ConditionFailed:
        ports.table.write(gone[0])
    _callers.forget(ports.table, key.sha256)


def authenticate(ports: Ports, headers: Mapping[str, str]) -> Caller:
    """Who sent this request.

    Takes the key from `X-API-Key`, else from `Authorization: Bearer`. A known key costs a strong read at most once a minute
    in a process; an unknown one is looked up each time, so a new key works at once.

    Raises
    ------
    Unauthorized
        No key, an unknown, revoked or expired one.
    """
    secret = _secret({name.lower(): value for name, value in headers.items()})
    sha256 = _hash(secret)
    now = ports.clock.now()
    found = _callers.get(ports.table, sha256, now)
    if found is None:
        item = ports.table.read([_lookup(sha256)])[0]
        if item is None:
            raise Unauthorized("The API key is unknown or was revoked.")
        key = _from_item(item)
        found = _callers.put(ports.table, sha256, Caller(key.account, frozenset(key.scopes), key.id, key.expires_at), now)
    caller = found.value
    if caller.expires_at is not None and now >= caller.expires_at:
        raise Unauthorized(f"The API key expired at {iso(caller.expires_at)}.")
    return caller


def _secret(headers: Mapping[str, str]) -> str:
    if key := headers.get("x-api-key", "").strip():
        return key
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    raise Unauthorized("An API key is needed: send it as X-API-Key, or as Authorization: Bearer.")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _lookup(sha256: str) -> Key:
    return Key(f"KEY#{sha256}", "KEY")


def _listed(account: str, key_id: str) -> Key:
    return Key(f"ACCOUNT#{account}", f"KEY#{key_id}")


def _to_item(key: ApiKey, place: Key) -> Item:
    item: Item = {
        "pk": place.pk,
        "sk": place.sk,
        "id": key.id,
        "account": key.account,
        "name": key.name,
        "scopes": list(key.scopes),
        "created_at": key.created_at,
        "sha256": key.sha256,
    }
    if key.expires_at is not None:
        item["expires_at"] = key.expires_at
    return item


def _from_item(item: Item) -> ApiKey:
    return ApiKey(
        id=item["id"],
        account=item["account"],
        name=item["name"],
        scopes=tuple(item["scopes"]),
        created_at=item["created_at"],
        expires_at=item.get("expires_at"),
        sha256=item["sha256"],
    )
