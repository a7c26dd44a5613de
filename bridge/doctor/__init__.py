"""Looks at what both sides need, without torch, without .NET and without a build if need be."""

from bridge.doctor.examine import examine
from bridge.doctor.finding import Finding

__all__ = ["Finding", "examine"]
