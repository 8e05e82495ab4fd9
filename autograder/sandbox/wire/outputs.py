"""The outputs of a cell, in nbformat's form."""

from base64 import b64encode
from typing import Any

# What one cell may show: characters that it prints, bytes of pictures and other displays, outputs of each
# kind.
MOST_CHARACTERS = 1_000_000
MOST_PICTURES = 10 << 20
MOST_OUTPUTS = {"stream": 300, "display_data": 500, "execute_result": 100, "error": 10}
LEFT_OUT = "(this cell showed more than a page can hold: the rest was left out)\n"


class Outputs:
    """The outputs of a cell, in nbformat's form, and no more of them than a page can hold."""

    def __init__(self, most_characters: int = MOST_CHARACTERS) -> None:
        self._items: list[dict[str, Any]] = []
        self._more: list[str] = []  # text that belongs to the last item
        self._characters, self._pictures = most_characters, MOST_PICTURES
        self._left = dict(MOST_OUTPUTS)

    def stream(self, name: str, text: str) -> None:
        """Text on stdout or stderr; what goes over the limit is left out."""
        text = text[: max(0, self._characters)]
        self._characters -= len(text)
        if not text:
            return
        last = self._items[-1] if self._items else {}
        if last.get("output_type") == "stream" and last["name"] == name:
            self._more.append(text)
        else:
            self._add({"output_type": "stream", "name": name, "text": text})

    @property
    def items(self) -> list[dict[str, Any]]:
        if self._more:
            self._items[-1]["text"] += "".join(self._more)
            self._more.clear()
        return self._items

    def bundle(self, kind: str, data: dict[str, Any], metadata: dict[str, Any] | None = None) -> None:
        """A display_data or an execute_result."""
        data = {
            key: b64encode(item).decode() if isinstance(item, bytes) else item for key, item in data.items()
        }
        size = sum(len(item) for item in data.values() if isinstance(item, str))
        if size > self._pictures:
            self.stream("stderr", "(a display was too large and was left out)\n")
            return
        self._pictures -= size
        item = {"output_type": kind, "data": data, "metadata": metadata or {}}
        self._add(item | {"execution_count": None} if kind == "execute_result" else item)

    def error(self, name: str, message: str, traceback: list[str]) -> None:
        self._add(
            {
                "output_type": "error",
                "ename": name,
                "evalue": message[:5000],
                "traceback": [line[:5000] for line in traceback[-50:]],
            }
        )

    def _add(self, item: dict[str, Any]) -> None:
        left = self._left[item["output_type"]]
        self._left[item["output_type"]] -= 1
        if left > 0:
            self.items.append(item)
        elif left == 0:
            self.items.append({"output_type": "stream", "name": "stderr", "text": LEFT_OUT})
