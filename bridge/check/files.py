"""Writes a check as JUnit's XML, and as HTML."""

from pathlib import Path
from xml.etree import ElementTree as ET

from jinja2 import Environment, PackageLoader

from bridge.check.result import Result
from bridge.check.text import render


def junit(result: Result, file: Path, *, strict: bool = False) -> None:
    """Write one test case, which fails where the check does.

    Spec: R34.4
    """
    code = result.exit_code(strict=strict)
    suite = ET.Element(
        "testsuite",
        name="bridge check",
        tests="1",
        failures=str(int(code == 1)),
        errors=str(int(code > 1)),
    )
    case = ET.SubElement(suite, "testcase", classname="bridge", name="check")
    if code:
        kind = "failure" if code == 1 else "error"
        ET.SubElement(case, kind, message=_xml(result.reason)).text = _xml(render(result))
    file.parent.mkdir(parents=True, exist_ok=True)
    ET.ElementTree(suite).write(file, encoding="utf-8", xml_declaration=True)


def html(result: Result, file: Path) -> None:
    """Write a page that needs no other file.

    Spec: R34.4
    """
    environment = Environment(loader=PackageLoader("bridge.check", ""), autoescape=True)
    page = environment.get_template("report.html.j2").render(result=result)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page, encoding="utf-8")


def _xml(text: str) -> str:
    """Leave out what XML cannot hold."""
    return "".join(sign for sign in text if sign in "\t\n\r" or sign >= " ")
