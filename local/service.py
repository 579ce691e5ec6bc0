"""The whole service in one process: front, queue pumps and schedules around the functions, over an opened store."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from memory_banks import access, bootstrap
from memory_banks.errors import Unauthorized
from memory_banks.ports import ModelError, Ports, UnknownModel

from local.data_folder import DataFolder
from local.emulator import Emulator, EmulatorFailed
from local.front import Front
from local.lambdas import Function
from local.pump import Pump
from local.schedule import Schedule
from local.store import opened
from local.waiting import Waiter
from local.wiring import LocalWiring

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
ACCOUNT = "local"
"""The account that keys of `serve` open."""

GRACE_SECONDS = 30
"""How long requests may take to finish when the service stops: longer than a write waits."""


KEEP_ALIVE_SECONDS = 75
"""How long an idle connection stays open: longer than clients keep theirs, so none is used as it closes."""

BACKLOG = 128
"""Connections that may wait to be accepted."""


class PortTaken(Exception):
    """Something else listens there."""


@dataclass(frozen=True, slots=True)
class Options:
    """What `serve` can be told."""

    port: int = 8000
    """0 takes a free one."""
    api_key: str | None = None
    """None: the data folder's own key."""
    data_dir: Path | None = None
    """None: a temporary folder, gone at the end."""
    sweep_seconds: float = 60
    """Between two rounds of the compaction and the retention sweep."""


@dataclass(frozen=True, slots=True)
class Started:
    """What is running, for who is to be told."""

    url: str
    api_key: str
    folder: Path
    emulator: str
    index: str
    embedding_model: str
    chat_model: str


def run(options: Options, started: Callable[[Started], None]) -> None:
    """Serve until SIGINT or SIGTERM, then finish the requests at hand and put everything on disk.

    Call it in the main thread. `started` is told what runs just before the first request is taken. Raises `PortTaken` and
    what `store.opened` raises; `emulator.EmulatorFailed` also when the emulator dies meanwhile.
    """
    # Ctrl-C and SIGTERM are the same to the end; while requests are served, uvicorn has them.
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt), ExitStack() as stack:
            listener = stack.enter_context(_listening(options.port))
            folder = DataFolder(options.data_dir or Path(stack.enter_context(TemporaryDirectory(prefix="memory-banks-"))))
            wiring, emulator = stack.enter_context(opened(folder))
            key = options.api_key or folder.own_key()
            _register(wiring, key)
            stack.enter_context(_used(wiring))
            server = stack.enter_context(_working(wiring, emulator, options))
            url = f"http://{HOST}:{listener.getsockname()[1]}"
            stack.enter_context(
                folder.announced(url=url, endpoint=emulator.endpoint, resources=asdict(emulator.resources)),
            )
            threading.Thread(target=_load_model, args=(wiring,), name="model", daemon=True).start()
            # From here on a client that is told the address waits a moment instead of being turned away.
            listener.listen(BACKLOG)
            started(_facts(wiring, emulator, folder, url, key))
            server.run(sockets=[listener])
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    """The port, taken before anything else is started; nobody is accepted yet."""
    # Only of a socket that is called TCP by name does asyncio turn off Nagle's delay: 40 ms a request.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise PortTaken(f"port {port} of {HOST} is not free") from error
        yield listener


def _register(ports: Ports, key: str) -> None:
    """Let the key in, unless it is known from the last time."""
    try:
        access.authenticate(ports, {"x-api-key": key})
    except Unauthorized:
        access.create_key(ports, ACCOUNT, scopes=access.SCOPES, name="serve", secret=key)


@contextmanager
def _used(wiring: LocalWiring) -> Iterator[None]:
    """The functions of this process take these ports."""
    bootstrap.use(wiring)
    try:
        yield
    finally:
        bootstrap.use(None)


@contextmanager
def _working(wiring: LocalWiring, emulator: Emulator, options: Options) -> Iterator[uvicorn.Server]:
    """Pumps and schedules at work, and the server that is still to be run; they go on until its last request is answered."""
    settings = wiring.settings
    names = ("api", "ingest", "compact", "distill", "export", "sweep")
    api, ingest, compact, distill, export, sweep = (Function(name) for name in names)
    with closing(Front(api, Waiter(wiring), wiring.clock)) as front:
        config = uvicorn.Config(
            front,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        server = uvicorn.Server(config)
        sweeps = [kind for kind, on in (("compaction", settings.sweep_compaction), ("retention", settings.sweep_retention)) if on]
        workers: list[Pump | Schedule] = [
            Pump(emulator.client("sqs"), settings.ingestion_queue_url, ingest, batch=10),
            Pump(emulator.client("sqs"), settings.compaction_queue_url, compact, batch=1),
            Pump(emulator.client("sqs"), settings.distillation_queue_url, distill, batch=1),
            Pump(emulator.client("sqs"), settings.export_queue_url, export, batch=1),
            Schedule(sweep, sweeps, options.sweep_seconds),
        ]
        for worker in workers:
            worker.start()
        try:
            with _guarded(emulator, server):
                yield server
        finally:
            for worker in workers:
                worker.stop()


@contextmanager
def _guarded(emulator: Emulator, server: uvicorn.Server) -> Iterator[None]:
    """Stop serving when the emulator is gone: nothing can be written or read, and a restart finds what the journal has."""

    def watch() -> None:
        emulator.process.wait()
        server.should_exit = True

    threading.Thread(target=watch, name="emulator", daemon=True).start()
    yield
    if emulator.process.poll() is not None:
        raise EmulatorFailed("the AWS emulator died; what was written until about a second before is safe: start again")


def _load_model(wiring: LocalWiring) -> None:
    """Have an embedded model in memory before it is asked for. What goes wrong here is told by who asks."""
    model = wiring.embedders.default
    if model.startswith("embedded/"):
        with suppress(ModelError, UnknownModel):
            wiring.embedders(model, wiring.embedders.sizes(model)[-1]).embed(["ready"])


def _facts(wiring: LocalWiring, emulator: Emulator, folder: DataFolder, url: str, key: str) -> Started:
    settings = wiring.settings
    return Started(
        url=url,
        api_key=key,
        folder=folder.path,
        emulator=emulator.endpoint,
        index=f"OpenSearch at {settings.opensearch_url}" if settings.index == "opensearch" else "embedded",
        embedding_model=settings.embedding_model,
        chat_model=settings.chat_model,
    )
