"""Turns what students wrote into HTML that can do nothing but be read: rendered, then held to an allow-list.

Nothing that it lets through runs, loads anything, has a style or a name, or lies over another part of a page.
Formulas stay as they were written: what typesets them could draw anything anywhere.
"""

import re
from html import escape
from pathlib import Path

import msgspec
import nh3
from markupsafe import Markup
from mistune import import_plugin
from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath
from pygments.token import STANDARD_TYPES

from .reading import sound

# What one text may have. The time to render it grows with their squares; longer ones are shown as written.
MOST_CHARACTERS, MOST_TAGS = 20_000, 500
MOST_PICTURES = 20_000_000  # bytes

PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")
CODE_CLASSES = {"highlight", *STANDARD_TYPES.values()}

_ALLOWED = msgspec.toml.decode(Path(__file__).with_name("allowed_html.toml").read_bytes())
TAGS, LANGUAGES, CARD_STYLES = (set(_ALLOWED[kind].split()) for kind in ("tags", "languages", "card_styles"))
ATTRIBUTES = {tag: set(names.split()) for tag, names in _ALLOWED["attributes"].items()}
VALUES = {name: re.compile(form) for name, form in _ALLOWED["values"].items()} | {"src": PICTURE}


class TooMuch(Exception):
    """A text has more in it than a page can take."""


def safe_markdown(source: str, attachments: dict[str, dict[str, str]] | None = None) -> Markup:
    """A student's Markdown as HTML; what cannot be rendered is shown as it was written."""
    try:
        check_size(source)
        plugins = [import_plugin(name) for name in ("strikethrough", "table", "url", "def_list")]
        return _clean(MarkdownWithMath(_Renderer(attachments or {}), plugins=plugins).render(source))
    except Exception:  # of a parser that reads what was made for it to stumble over
        return as_written(source)


def safe_html(html: str) -> Markup:
    """HTML with all but what is allowed taken out. Raises TooMuch."""
    check_size(html)
    return _clean(sound(html))


def safe_card(html: str) -> Markup:
    """The HTML of an outcome's card, with its colours."""
    clean = nh3.clean(
        sound(html),
        tags={"b", "div", "table", "td", "tr"},
        attributes={"*": {"style"}, "div": {"role"}, "table": {"aria-label"}},
        filter_style_properties=CARD_STYLES,
        clean_content_tags=set(),
    )
    return Markup(clean)


def as_written(text: str) -> Markup:
    return Markup("<pre>{}</pre>").format(text)


def check_size(text: str) -> None:
    """Raises TooMuch for a text that would take too long to read."""
    if text_size(text) > MOST_CHARACTERS or len(re.findall("<[A-Za-z]", text)) > MOST_TAGS:
        raise TooMuch


def text_size(text: str) -> int:
    """How long a text is, in characters, without the pictures in it."""
    return len(text) - sum(len(picture[0]) for picture in PICTURE.finditer(text))


class _Renderer(IPythonRenderer):
    """nbconvert's, without anchors, styles and files beside the notebook, and with an end to its pictures."""

    def __init__(self, attachments: dict[str, dict[str, str]]) -> None:
        super().__init__(escape=False, exclude_anchor_links=True, attachments=attachments)
        self._left = MOST_PICTURES

    def image(self, text: str, url: str, title: str | None = None) -> str:
        try:
            return self._counted(super().image(text, url, title))
        except InvalidNotebook:  # there is no such attachment
            return escape(text)

    def link(self, text: str, url: str, title: str | None = None) -> str:
        return self._counted(super().link(text, url, title))

    def _counted(self, html: str) -> str:
        # One long address can stand behind many short references.
        self._left -= len(html)
        if self._left < 0:
            raise TooMuch
        return html

    def block_code(self, code: str, info: str | None = None) -> str:
        language = (info or "").split(maxsplit=1)[:1]
        return super().block_code(code, language[0] if set(language) & LANGUAGES else None)

    def table_cell(self, text: str, align: str | None = None, head: bool = False) -> str:
        tag = "th" if head else "td"
        return f"<{tag}{f' align={align}' if align else ''}>{text}</{tag}>"


def _clean(html: str) -> Markup:
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        attribute_filter=_held,
        url_schemes={"http", "https", "mailto", "data"},
        clean_content_tags=set(),  # of scripts and styles, the text stays
        link_rel=None,
    )
    return Markup(clean)


def _held(tag: str, name: str, value: str) -> str | None:
    """The value of an attribute that an element may have; None where it may not have this value."""
    if name == "class":
        return value if CODE_CLASSES.issuperset(value.split()) else None
    return value if name not in VALUES or VALUES[name].fullmatch(value) else None
