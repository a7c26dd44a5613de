"""The catalogue of fault signatures, one file per family."""
