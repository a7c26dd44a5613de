"""The battery of small operations on both sides: whether bits can be equal, and where not."""

import hashlib
from collections.abc import Iterator

import torch

from bridge.conformance.measure import Aspect, compare
from bridge.conformance.outcome import Outcome
from bridge.doctor.finding import Finding
from bridge.dotnet import Host
from bridge.dotnet.session import Session
from bridge.parity import family

_SIGNS = 16


def fingerprint() -> str:
    """Digest the battery's digests, at one thread, into one word: equal words, equal build family.

    Spec: R32.4
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    text = "".join(f"{name}={digest}\n" for name, digest in family.battery().items())
    torch.set_num_threads(threads)
    return hashlib.sha256(text.encode()).hexdigest()[:_SIGNS]


def measure(host: Host, threads: int) -> list[Aspect]:
    """Run the battery on both sides and measure each result in ulps.

    Spec: R32.4
    """
    torch.set_num_threads(threads)
    reply = host.call("family.run", threads=threads)
    with Session(host, reply) as session:
        csharp = Outcome(dict(session.state_dict()))
    python = {name: result.detach() for name, result in family.results().items()}
    return compare(Outcome(python), csharp)


def findings(aspects: list[Aspect]) -> Iterator[Finding]:
    """Say of what family the builds are, and where they differ."""
    odd = [aspect for aspect in aspects if aspect.verdict != "same bits"]
    equal = len(aspects) - len(odd)
    if not odd:
        text = f"one: {equal} of {equal} operations give the same bits; rule bitwise"
        yield Finding("build family", "ok", text)
        return
    text = f"two: {equal} of {len(aspects)} operations give the same bits; rule float32"
    remedy = "for equal bits: pip install torch==2.10.0, TorchSharp's libtorch"
    yield Finding("build family", "note", text, remedy)
    for aspect in odd:
        yield Finding(f"  {aspect.name}", "note", f"{aspect.ulp:.3g} ulp")
