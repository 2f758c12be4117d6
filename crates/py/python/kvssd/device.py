"""A simulated drive to ask, for simulators of whole systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypedDict, cast

from kvssd._kvssd import RawDevice
from kvssd.experiments import _assignments, _factor
from kvssd.numbers import U32_MAX, U64_MAX, beyond

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Completion(NamedTuple):
    """What became of a command."""

    done_ns: int
    """When the host has the answer."""
    is_done: bool
    """Whether the key was there; of a store, whether the drive had room."""
    value_bytes: int
    """Bytes of the value that was stored, or of the whole one that was asked for."""


class DeviceStats(TypedDict):
    """What the flash did since the drive was new."""

    now_ns: int
    flash_bytes: int
    page_bytes: int
    value_bytes_max: int
    stored_bytes: int
    pages_read: int
    pages_programmed: int
    erases: int


class Device:
    """A drive of a design on the hardware of a profile, on virtual time: ``command(at_ns, ...) -> Completion``.

    Commands come in the order of their times, in nanoseconds since the drive was switched on; any number may be under way, since each says when
    it is done. Values are told by their length alone. The same commands get the same answers, on any machine.
    """

    def __init__(
        self,
        design: str = "plus",
        *,
        profile: str = "kvvirt",
        scale: float | str = "1/64",
        set: Mapping[str, object] | None = None,
        _raw: RawDevice | None = None,
    ) -> None:
        self._raw = _raw or RawDevice(design, profile, _factor(scale) or 0.0, _assignments(set))

    def store(self, at_ns: int, key: Buffer, value_bytes: int) -> Completion:
        """Store a value of so many bytes."""
        try:
            return Completion(*self._raw.store(at_ns, key, value_bytes))
        except OverflowError:
            most = self.stats()["value_bytes_max"]
            raise beyond(at_ns=(at_ns, 0, U64_MAX), value_bytes=(value_bytes, 0, most)) from None

    def retrieve(self, at_ns: int, key: Buffer, *, offset_bytes: int = 0, length_bytes: int = (1 << 32) - 1) -> Completion:
        """Retrieve a value, or a part of it."""
        try:
            return Completion(*self._raw.retrieve(at_ns, key, offset_bytes, length_bytes))
        except OverflowError:
            part = {"offset_bytes": (offset_bytes, 0, U32_MAX), "length_bytes": (length_bytes, 0, U32_MAX)}
            raise beyond(at_ns=(at_ns, 0, U64_MAX), **part) from None

    def delete(self, at_ns: int, key: Buffer) -> Completion:
        """Delete a pair."""
        try:
            return Completion(*self._raw.delete(at_ns, key))
        except OverflowError:
            raise beyond(at_ns=(at_ns, 0, U64_MAX)) from None

    def exist(self, at_ns: int, key: Buffer) -> Completion:
        """Ask whether a key is there."""
        try:
            return Completion(*self._raw.exist(at_ns, key))
        except OverflowError:
            raise beyond(at_ns=(at_ns, 0, U64_MAX)) from None

    def fork(self) -> Device:
        """The same drive at the same moment once more: from here on the two live apart. An aged drive need be aged once."""
        return Device(_raw=self._raw.fork())

    def stats(self) -> DeviceStats:
        """What the flash did, and how large the drive is."""
        return cast(DeviceStats, self._raw.stats())
