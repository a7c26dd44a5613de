"""Finding .NET and the host library."""

from pathlib import Path

import pytest

from bridge.dotnet import DotnetError, folders


@pytest.fixture
def roots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Make a folder the only place where .NET may be."""
    monkeypatch.setattr(folders, "_roots", lambda: iter([tmp_path]))
    return tmp_path


def install(root: Path, *versions: str) -> None:
    """Put libraries of these versions under a root."""
    for version in versions:
        library = root / "host" / "fxr" / version / folders.HOSTFXR
        library.parent.mkdir(parents=True)
        library.touch()


def test_newest_version_is_taken_by_number(roots: Path) -> None:
    """Version 10.0.12 is newer than 10.0.9 and 9.0.11, and than its own previews. Spec: R16.5."""
    install(roots, "10.0.9", "9.0.11", "10.0.12", "10.0.12-rc.2.25502.107", "10.0.12-rc.10.1")
    root, library = folders.hostfxr()
    assert (root, library.parent.name) == (roots, "10.0.12")


def test_previews_sort_by_number() -> None:
    """Release candidate 10 is newer than 2, and both are newer than a preview. Spec: R16.5."""
    names = ["10.0.0-rc.10.1", "10.0.0", "10.0.0-preview.7.1", "10.0.0-rc.2.5", "9.0.0"]
    expected = ["9.0.0", "10.0.0-preview.7.1", "10.0.0-rc.2.5", "10.0.0-rc.10.1", "10.0.0"]
    assert sorted(names, key=folders.version) == expected


def test_folder_without_a_library_is_not_dotnet(roots: Path) -> None:
    """No .NET is an error that names the folders searched and says what to do. Spec: R16.5."""
    (roots / "host" / "fxr" / "10.0.1").mkdir(parents=True)
    with pytest.raises(DotnetError, match=r"expected \.NET 10 .* found none in .*DOTNET_ROOT") as e:
        folders.hostfxr()
    assert str(roots) in str(e.value)


def test_named_root_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """DOTNET_ROOT goes before every other place. Spec: R16.5."""
    install(tmp_path, "10.0.1")
    monkeypatch.setenv("DOTNET_ROOT", str(tmp_path))
    assert folders.hostfxr()[0] == tmp_path


def test_command_on_path_is_followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A link to the dotnet command leads to the folder that it points into. Spec: R16.5."""
    install(tmp_path / "real", "10.0.1")
    command = tmp_path / "real" / "dotnet"
    command.touch(mode=0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dotnet").symlink_to(command)
    monkeypatch.delenv("DOTNET_ROOT", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert folders.hostfxr()[0] == tmp_path / "real"


def test_empty_host_folder_says_what_to_run(tmp_path: Path) -> None:
    """A folder without the host library is an error that says how to make it. Spec: R16.5."""
    with pytest.raises(DotnetError, match=r"expected BridgeSharp\.Host\.dll in .*build\.sh setup"):
        folders.host_folder(tmp_path)


def test_host_folder_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """BRIDGE_HOST_FOLDER replaces the build output. Spec: R16.5."""
    for name in folders.FILES:
        (tmp_path / name).touch()
    monkeypatch.setenv("BRIDGE_HOST_FOLDER", str(tmp_path))
    assert folders.host_folder() == tmp_path
