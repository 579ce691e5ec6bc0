"""Actors that run one at a time, each stopping before every call of a port until chance picks it: repeatable interleavings.

Each actor is a thread that waits for a baton. Time stands still while anyone can run, and jumps when all sleep; nothing waits for
luck.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

from tests.doubles.clock import ManualClock
from tests.faults.gate import Call, Death

PATIENCE = 60
"""Seconds after which a baton that does not come back is an error, not a wait."""


class Actor(threading.Thread):
    """A thread that runs only while it has the baton."""

    def __init__(self, stepper: Stepper, body: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._stepper, self._body = stepper, body
        self.baton = threading.Semaphore(0)
        self.wake_at = 0
        self.doomed = False
        self.at: Call | None = None
        """The call before which it stands; None before the first, and while it sleeps."""
        self.error: BaseException | None = None

    def run(self) -> None:
        self.baton.acquire()
        try:
            if not self.doomed:
                self._body()
        except Death:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self._stepper.finished(self)


class Stepper(ManualClock):
    """Picks who goes on, and is everybody's clock. `death` is the chance of an actor to die at a step."""

    def __init__(self, seed: int, *, death: float = 0.0) -> None:
        super().__init__()
        self.chance = random.Random(seed)
        self.death = death
        self.actors: list[Actor] = []
        self.steps = 0
        self._returned = threading.Semaphore(0)

    def start(self, body: Callable[[], Any]) -> Actor:
        """A new actor; it does nothing before it is picked."""
        actor = Actor(self, body)
        self.actors.append(actor)
        actor.start()
        return actor

    def pause(self, call: Call | None = None) -> None:
        """An actor gives the baton back and waits for it. Whoever is no actor just goes on."""
        actor = threading.current_thread()
        if isinstance(actor, Actor):
            actor.at = call
            self._returned.release()
            assert actor.baton.acquire(timeout=PATIENCE), "nobody picked this actor any more"
            if actor.doomed:
                raise Death

    def sleep(self, seconds: float) -> None:
        actor = threading.current_thread()
        if isinstance(actor, Actor):
            actor.wake_at = self.now() + round(seconds * 1000)
            self.pause()
        else:
            super().sleep(seconds)

    def finished(self, actor: Actor) -> None:
        """Called by an actor as its last act."""
        self.actors.remove(actor)
        self._returned.release()

    def step(self) -> None:
        """One actor goes on to its next call, or dies there."""
        awake = [actor for actor in self.actors if actor.wake_at <= self.now()]
        if not awake:
            first = min(self.actors, key=lambda actor: actor.wake_at)
            self.advance(milliseconds=first.wake_at - self.now())
            awake = [first]
        actor = awake[self.chance.randrange(len(awake))]
        actor.doomed = self.chance.random() < self.death
        self.let(actor)

    def let(self, actor: Actor, port: str | None = None, method: str = "") -> None:
        """Let this one go on: to its next call, or until it stands before this call of a port."""
        while True:
            self._pass_baton(actor)
            if port is None or actor not in self.actors or (actor.at and (actor.at.port, actor.at.method) == (port, method)):
                return

    def finish(self, actor: Actor) -> None:
        """Let this one go on to its end."""
        while actor in self.actors:
            self._pass_baton(actor)

    def _pass_baton(self, actor: Actor) -> None:
        if actor.wake_at > self.now():
            self.advance(milliseconds=actor.wake_at - self.now())
        self.steps += 1
        actor.baton.release()
        assert self._returned.acquire(timeout=PATIENCE), "the baton did not come back"
        if actor.error is not None:
            self.stop()
            raise actor.error

    def run(self) -> None:
        """Until all actors are done."""
        while self.actors:
            self.step()

    def stop(self) -> None:
        """Every actor dies where it stands."""
        while self.actors:
            actor = self.actors[0]
            actor.doomed = True
            actor.baton.release()
            assert self._returned.acquire(timeout=PATIENCE)
