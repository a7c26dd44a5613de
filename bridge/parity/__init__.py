"""Proof that two trainers are one: digests, the build-family battery, comparison, the report."""
