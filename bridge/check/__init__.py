"""Checks a C# port against its Python reference: preflight, training on both sides, a verdict."""

from bridge.check.config import Config, ConfigError, load
from bridge.check.result import Finding, Result
from bridge.check.run import check

__all__ = ["Config", "ConfigError", "Finding", "Result", "check", "load"]
