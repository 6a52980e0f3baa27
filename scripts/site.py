#!/usr/bin/python3
"""Builds the documentation site in build/site and checks its links: scripts/site.py [BUILD]

BUILD (default build/dev) has the program and the Python package, from which the references are made.
Needs Debian's mkdocs and mkdocs-material.
"""

import html.parser
import importlib
import inspect
import json
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = ROOT / "build/site-sources"
SITE = ROOT / "build/site"


# Pages that are made -----------------------------------------------------------------------------


def home():
    """The README: links into docs/ stay, those to other files of the repository become plain text."""
    text = (ROOT / "README.md").read_text()
    text = re.sub(r"\]\(docs/([^)]+)\)", r"](\1)", text)
    return re.sub(r"\[([^\]]+)\]\((?!https?://|#|images/|[a-z_]+\.md)[^)]*\)", r"\1", text)


def signature(thing):
    try:
        # Annotations are texts; defaults that are texts keep their quotes.
        return re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(thing)))
    except (TypeError, ValueError):
        first = (thing.__doc__ or "").splitlines()[:1]
        return re.sub(r"^\w+", "", first[0]) if first and "(" in first[0] else ""


def docstring(thing):
    """Without the signature line of compiled functions; examples as code."""
    text = inspect.getdoc(thing) or ""
    text = re.sub(r"\A\w+\(.*\n\n?", "", text)
    text = re.sub(r":\w+:`([^`]*)`", r"`\1`", text).replace("``", "`")
    lines, inside = [], False
    for line in text.splitlines():
        if line.startswith(">>>") and not inside:
            lines += ["", "```python"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line.replace("  # doctest: +SKIP", "").rstrip())
    return "\n".join(lines + (["```"] if inside else []))


def python_reference(build):
    sys.path.insert(0, str(build / "python"))
    codband = importlib.import_module("codband")
    text = "# Python API\n\nMade from the docstrings of `codband`.\n"
    for name in codband.__all__:
        thing = getattr(codband, name)
        if name.startswith("_"):
            continue
        text += f"\n## {name}\n\n```python\ncodband.{name}{signature(thing)}\n```\n\n{docstring(thing)}\n"
        if not inspect.isclass(thing):
            continue
        for member, value in inspect.getmembers(thing):
            if member.startswith("_") or not (callable(value) or isinstance(value, property)):
                continue
            if issubclass(thing, Exception):
                continue
            shown = member if isinstance(value, property) else f"{member}{signature(value)}"
            text += f"\n### {name}.{member}\n\n```python\n{shown}\n```\n\n{docstring(value)}\n"
    return text


def http_reference():
    openapi = json.loads((ROOT / "codband/server/api/openapi.json").read_text())
    text = "# HTTP operations\n\nMade from the server's OpenAPI description, `GET /openapi.json`. "
    text += "[http_api.md](http_api.md) explains them.\n"
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            if "operationId" not in operation:
                continue
            text += f"\n## {method.upper()} {path}\n\n{operation['summary']} {operation.get('description', '')}\n"
            for parameter in operation.get("parameters", []):
                if "name" in parameter:
                    text += f"\n- `{parameter['name']}` ({parameter['in']}): {parameter.get('description', '')}"
            for kind, content in operation.get("requestBody", {}).get("content", {}).items():
                if "example" in content:
                    text += f"\n\nRequest, `{kind}`:\n\n```json\n{example(content['example'])}\n```\n"
            text += "\n\n| status | |\n|---|---|\n"
            for status, reply in operation["responses"].items():
                text += f"| {status} | {reply.get('description', reply.get('$ref', '').split('/')[-1])} |\n"
    text += "\n# Schemas\n"
    for name, schema in openapi["components"]["schemas"].items():
        text += f"\n## {name}\n\n```json\n{json.dumps(schema, indent=2)}\n```\n"
    return text


def example(value):
    return value if isinstance(value, str) else json.dumps(value, indent=2)


def commands(build):
    program = build / "codband/codband"
    run = lambda *arguments: subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
    text = f"# Commands\n\nMade from `--help`.\n\n```\n{run('--help')}```\n"
    for line in run("--help").split("Subcommands:")[1].splitlines():
        if line.strip():
            name = line.split()[0]
            text += f"\n## codband {name}\n\n```\n{run(name, '--help').strip()}\n```\n"
    return text


# The check of links -------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    """The ids of a page, and where it links to."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if "id" in attributes:
            self.ids.add(attributes["id"])
        for name in ("href", "src"):
            if attributes.get(name):
                self.links.add(attributes[name])


def broken_links(site):
    """Links within the site whose file or anchor does not exist."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.exists():
                broken.append(f"{path.name}: {link} does not exist")
            elif anchor and target in pages and anchor not in pages[target].ids and not anchor.startswith("__"):
                broken.append(f"{path.name}: {link} has no such anchor")
    return broken


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/dev").resolve()
    shutil.rmtree(SOURCES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCES)
    (SOURCES / "reporting.md").write_text((ROOT / "SECURITY.md").read_text().replace("(docs/", "("))
    page = SOURCES / "security.md"
    page.write_text(page.read_text().replace("(../SECURITY.md)", "(reporting.md)"))
    made = {"index": home(), "python_reference": python_reference(build), "http_reference": http_reference(),
            "commands": commands(build)}
    for name, text in made.items():
        (SOURCES / f"{name}.md").write_text(text)
    reply = subprocess.run(["mkdocs", "build", "-f", ROOT / "mkdocs.yml"], capture_output=True, text=True)
    if reply.returncode != 0:
        sys.exit(reply.stdout + reply.stderr)
    broken = broken_links(SITE)
    if broken:
        sys.exit("\n".join(broken))
    print(f"{len(list(SITE.rglob('*.html')))} pages in {SITE.relative_to(ROOT)}, all links lead somewhere")


if __name__ == "__main__":
    main()
