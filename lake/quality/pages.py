"""Renders HTML pages: every value is escaped, and a Content-Security-Policy allows no script or style but the page's own, by hash."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

_HERE = Path(__file__).parent


def render(template: str, styles: Sequence[str], scripts: Sequence[str] = (), **values: Any) -> str:
    """A page from a template of this folder. `styles`: names of style sheets in this folder; `scripts`: JavaScript of our own, as text.

    The page loads nothing: styles and scripts are written into it, and the policy names each by its hash. Text of the data that a browser
    would take for a script, a style or a form does nothing, even if it were not escaped.
    """
    environment = Environment(
        loader=PackageLoader("lake.quality", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.filters["json"] = _json
    environment.filters["time"] = _time
    style = "".join((_HERE / name).read_text(encoding="utf-8") for name in styles)
    written = [_inline(script) for script in scripts]
    return environment.get_template(template).render(policy=_policy(style, written), style=style, scripts=written, **values)


def _json(data: Any) -> Markup:
    """Data for a script to read, which ends no element: a browser does not run a script of type application/json."""
    return htmlsafe_json_dumps(data, default=str, separators=(",", ":"))


def _time(when: datetime | float) -> Markup:
    """A time (or seconds since 1970) in UTC, which the page's script turns into the reader's own."""
    at = when.astimezone(UTC) if isinstance(when, datetime) else datetime.fromtimestamp(when, UTC)
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M UTC"))


def _policy(style: str, scripts: Sequence[str]) -> str:
    allowed = " ".join(map(_hash, scripts)) or "'none'"
    return f"default-src 'none'; style-src {_hash(style)}; script-src {allowed}; img-src data:; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    """The source expression of an inline script or style (Content Security Policy Level 3, section 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _inline(script: str) -> str:
    """A script that may stand in a page: HTML parsers turn \\r\\n into \\n, which would change the hash, and end it at its end tag."""
    return script.replace("\r\n", "\n").replace("\r", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")
