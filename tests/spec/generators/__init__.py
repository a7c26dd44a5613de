"""Makers of the vectors whose expected values need PyTorch, and none of the code under test."""
