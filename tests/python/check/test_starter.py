"""The starter of ``bridge init``."""

import shutil
from pathlib import Path

import pytest

import bridge.dotnet
from bridge.check import check, text
from bridge.starter import FILES, init


def test_starter_is_identical_as_written(
    shared_host: bridge.dotnet.IsolatedHost, tmp_path: Path
) -> None:
    """Its check builds the port, and ends identical. Spec: R34.6."""
    if shutil.which("dotnet") is None:
        pytest.skip("no dotnet command on PATH to build the port with")
    pytest.importorskip("tomllib")
    written = init(tmp_path / "new")
    assert [file.relative_to(tmp_path / "new").as_posix() for file in written] == list(FILES)
    result = check(tmp_path / "new" / "port.toml", host=shared_host)
    assert result.verdict == "identical", text.render(result)


def test_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    """Nothing is written where something is. Spec: R34.6."""
    (tmp_path / "mine").touch()
    with pytest.raises(ValueError, match="init: expected an empty folder"):
        init(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]
